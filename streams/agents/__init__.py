"""The four agents: ingest, audit, deploys and notify."""

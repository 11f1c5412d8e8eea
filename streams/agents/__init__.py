"""The agents: ingest, audit, deploys and signals; that of alerts is `streams.delivery`."""

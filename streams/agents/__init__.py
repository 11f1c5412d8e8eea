"""The agents: ingest, audit and deploys; that of alerts is `streams.delivery`."""

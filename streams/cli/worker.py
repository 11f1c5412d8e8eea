"""`tailbudget worker`."""

from __future__ import annotations

from tailbudget.streams.cli.options import Config, settings


def worker(*, config: Config = None) -> None:
    """Run one worker against the configured Kafka and ClickHouse.

    Start as many as there are partitions to share; each needs its own port. SIGTERM ends it
    after what it holds is written.

    Example: `TAILBUDGET_KAFKA__BOOTSTRAP=kafka:9092 tailbudget worker -c tailbudget.yaml`
    """
    chosen = settings(config)
    from tailbudget.streams.serve import run  # noqa: PLC0415

    run(chosen)

"""ClickHouse: panes, rolling audits, alerts and deploys, and SQL over them.

`ClickHouse.open` connects, `migrate` creates the tables, `write_panes` and its like store.
Every write is idempotent: repeating it, whole or in part, changes nothing.
"""

from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.sinks.clickhouse.client import ClickHouse
from tailbudget.sinks.clickhouse.query import Answer

__all__ = ["Answer", "ClickHouse", "ClickHouseTarget"]

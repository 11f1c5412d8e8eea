"""Whether anything was written since."""

from __future__ import annotations

from typing import Final

from tailbudget.sinks.clickhouse.client import ClickHouse

# The number of a block grows with every insert, and merges of parts keep it.
_WRITTEN: Final = """
SELECT table, sum(newest) AS blocks
FROM
(
    SELECT table, partition, max(max_block_number) + 1 AS newest
    FROM system.parts
    WHERE database = currentDatabase() AND active
    GROUP BY table, partition
)
GROUP BY table
ORDER BY table
"""


def written(store: ClickHouse) -> dict[str, int]:
    """Return a number for each table that has rows, which every insert makes larger."""
    return {str(table): int(blocks) for table, blocks in store.query(_WRITTEN).rows}

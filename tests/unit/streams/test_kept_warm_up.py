"""How long a service is cold after a deploy: as its deploys taught, or as its settings say."""

from __future__ import annotations

from dataclasses import replace

from random_records import T0_NS

from tailbudget.schemas.anomaly_rows import ColdWindowRow
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.kept_budgets import asking
from tailbudget.streams.kept_warm_up import cold_min, learnt_min

T0_MS = T0_NS // 1_000_000
SETTINGS = Settings.model_validate({"services": {"it's": {"cold_start_window_min": 3}}})


def test_the_newest_learnt_warm_up_counts(clickhouse: ClickHouse) -> None:
    """That of the newest deploy which has one; a suspected start has none."""
    query = asking(clickhouse)
    assert learnt_min(query, "it's") is None
    window = ColdWindowRow("it's", "v1", T0_MS, T0_MS + 300_000, "deploy", None)
    clickhouse.write_cold_windows([window, replace(window, version="x", source="suspected")])
    assert learnt_min(query, "it's") is None
    assert cold_min(SETTINGS, query, "it's") == 3
    later = replace(window, version="v2", start_ms=T0_MS + 1000, learnt_min=0.75)
    clickhouse.write_cold_windows([replace(window, learnt_min=2.0), later])
    assert learnt_min(query, "it's") == 0.75
    assert cold_min(SETTINGS, query, "it's") == 0.75

"""An anomaly as an alert and as a line of `up`: said when it begins and when it ends."""

from __future__ import annotations

import io
from dataclasses import replace

from random_records import SECOND_NS, T0_NS
from rich.console import Console

from tailbudget.schemas.anomaly_rows import AnomalyRow
from tailbudget.schemas.sections import ColdWindow
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.messages.words import words
from tailbudget.streams.alert_book import AlertBook
from tailbudget.streams.anomaly_alerts import anomaly_alert
from tailbudget.streams.anomaly_rows import lost_row, nearest_deploy
from tailbudget.streams.narrator import Narrator

STARTED = AnomalyRow(
    "chat", "prefill", ("route=chat", "route=rag"), "started", "mean", T0_NS + 120 * SECOND_NS,
    T0_NS + 122 * SECOND_NS, T0_NS + 122 * SECOND_NS, 30.4, 25.0, 35.0, 9.0, 8.0, 10.5, 30.0,
    39.0, 120, "v2", "cache_miss",
)  # fmt: skip
ENDED = replace(STARTED, phase="ended", at_ns=T0_NS + 300 * SECOND_NS)
DEPLOY = ColdWindow(T0_NS, T0_NS + 60 * SECOND_NS, "v2", "deploy")
MOVED = ("clock of gpu-1 fell from 1,980 to 1,400 with the onset",)


def test_an_anomaly_fires_once_and_resolves_once() -> None:
    """With what the same shapes took, where, after which deploy, why, and what else changed."""
    book = AlertBook("chat")
    fired = anomaly_alert(book, STARTED, DEPLOY, signals=MOVED, link="http://here")
    assert fired is not None
    assert (fired.alert, fired.kind, fired.state) == ("anomaly:prefill", "anomaly", "firing")
    assert fired.severity == "ticket"
    assert "39 ms where the same shapes took 30 ms, +30 % (+25 to +35 %, n=120)" in fired.reason
    assert (fired.effect_pct, fired.effect_low_pct, fired.effect_high_pct) == (30.4, 25.0, 35.0)
    assert (fired.onset_ns, fired.deploy, fired.cause) == (STARTED.onset_ns, "v2", "cache miss")
    assert fired.evidence == (
        "in route=chat, route=rag",
        "began 2 min after the deploy of v2",
        *MOVED,
    )
    assert anomaly_alert(book, replace(STARTED, phase="spread"), DEPLOY) is None
    resolved = anomaly_alert(book, ENDED, DEPLOY)
    assert resolved is not None
    assert resolved.state == "resolved"
    assert resolved.alert_id == fired.alert_id
    assert anomaly_alert(book, ENDED, DEPLOY) is None


def test_a_chat_message_says_it() -> None:
    """The title alone tells the stage and the effect."""
    alert = anomaly_alert(AlertBook("chat"), STARTED, DEPLOY)
    assert alert is not None
    title = words(alert).title
    assert "prefill" in title
    assert "+30 %" in title
    assert "same input shapes" in title


def test_an_effect_that_nothing_tells_is_left_out() -> None:
    """No figure is made up."""
    alert = anomaly_alert(AlertBook("chat"), lost_row(STARTED, T0_NS), None)
    assert alert is None
    bare = replace(lost_row(STARTED, T0_NS), phase="started", cause="", deploy="")
    alert = anomaly_alert(AlertBook("chat"), bare, None)
    assert alert is not None
    assert alert.reason == "prefill all requests are slower"
    assert (alert.effect_pct, alert.deploy, alert.cause) == (None, "", "")


def test_the_nearest_deploy_is_the_last_before_the_onset() -> None:
    """Neither one that came later, nor one of days ago."""
    later = replace(DEPLOY, start_ns=T0_NS + 500 * SECOND_NS, version="v3")
    nearer = replace(DEPLOY, start_ns=T0_NS + 100 * SECOND_NS, version="v2b")
    assert nearest_deploy([later, nearer, DEPLOY], STARTED.onset_ns) == nearer
    assert nearest_deploy([later], STARTED.onset_ns) is None
    assert nearest_deploy([DEPLOY], T0_NS + 25 * 3600 * SECOND_NS) is None


def test_up_says_it_in_a_line(clickhouse: ClickHouse) -> None:
    """One when it begins and one when it ends, none twice, and none of an earlier run."""
    old = replace(STARTED, stage="decode")
    clickhouse.write_anomalies([replace(old, at_ns=T0_NS, started_ns=T0_NS)])
    out = io.StringIO()
    narrator = Narrator(Console(file=out, width=300, color_system=None), clickhouse, "chat")
    clickhouse.write_anomalies([STARTED])
    narrator.regressions()
    narrator.regressions()
    clickhouse.write_anomalies([ENDED])
    narrator.regressions()
    first, second = [line.split("regression ")[1] for line in out.getvalue().splitlines()]
    assert first == (
        "prefill is slower for the same shapes, +30 % (+25 to +35), 9 ms a request,"
        " since 10:02:00, after v2, cache miss"
    )
    assert second.startswith("prefill is over: ended, +30 %")

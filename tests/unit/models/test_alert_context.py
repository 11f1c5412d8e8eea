"""What an alert tells beside its figures, from an audit; and percentiles as measurements."""

from __future__ import annotations

from dataclasses import replace

from audits import breach, sparse
from requests_of import columns_of, summary_of

from tailbudget.models.alert_context import alert_context, slowest_request
from tailbudget.models.breach import BreachState
from tailbudget.models.breach_reading import breach_reading
from tailbudget.models.select import empty
from tailbudget.schemas.alert_context import AlertContext
from tailbudget.schemas.alerts import Condition
from tailbudget.schemas.objectives import Severity
from tailbudget.schemas.proposals import CauseName
from tailbudget.schemas.verdicts import Percentile, Verdict


def test_an_audit_says_where_to_look_and_what_to_do() -> None:
    """Driver, the cohort most beyond its share, the first cause with figures, the quickest fix."""
    said = alert_context(breach(), summary_of(columns_of([10.0, 900.0, 20.0])), link="here")
    assert said.tail_driver == "feature_lookup"
    assert (said.worst_cohort, said.worst_share_pct, said.worst_traffic_pct) == (
        "route=bulk",
        92.1,
        8.01,
    )
    assert said.cause == "input shape (batch_size through feature_lookup)"
    assert len(said.evidence) == 2
    assert said.first_step == "Send route=bulk to replicas of its own"
    assert (said.request_id, said.link) == ("r1", "here")


def test_what_is_not_known_stays_empty() -> None:
    """Without an audit there is a link at most; an unknown cause is none, its next step is one."""
    assert alert_context(None) == AlertContext()
    unknown = replace(
        breach().causes[0], cause=CauseName.UNKNOWN, missing=("Log the queue's length.",)
    )
    said = alert_context(replace(sparse(), causes=(unknown,), optimizations=(), cohorts=()))
    assert (said.cause, said.worst_cohort) == ("", "")
    assert said.first_step == "Log the queue's length."
    assert slowest_request(empty("chat")) == ""


def test_a_percentile_is_a_measurement() -> None:
    """What the statistical gate says decides; none and few hold, uncounted is blind."""
    row = Percentile("p99", 600.0, 500.0, -100.0, Verdict.BREACH, "all", "", n=2000, over=50)
    few = replace(row, status=Verdict.INSUFFICIENT, n=5)
    firing, calm = BreachState(firing=True, since_ns=1), BreachState()
    said = breach_reading(firing, row)
    assert (said.condition, said.severity) == (Condition.BAD, Severity.PAGE)
    assert breach_reading(calm, row).condition is Condition.GOOD
    assert breach_reading(firing, few).condition is Condition.HOLD
    assert breach_reading(replace(firing, frozen=True), row).condition is Condition.HOLD
    assert breach_reading(firing, replace(row, n=0, over=0)).condition is Condition.HOLD
    assert breach_reading(firing, replace(row, over=None)).condition is Condition.UNMEASURABLE

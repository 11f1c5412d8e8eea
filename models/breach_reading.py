"""A percentile's breach (`models.breach`) as a measurement for the one state machine.

The statistical gate stays where it is: a breach begins beyond doubt and ends beyond doubt, and
waits of the state machine come on top. A window without requests holds what was: where requests
are rare it is no news; whoever knows how long the silence lasts says that there are no data.
"""

from __future__ import annotations

from tailbudget.models.breach import BreachState, detail
from tailbudget.schemas.alerts import Condition, Reading
from tailbudget.schemas.objectives import Severity
from tailbudget.schemas.verdicts import Percentile, Verdict


def breach_reading(state: BreachState, row: Percentile) -> Reading:
    """Return what a percentile's newest step says.

    Args:
        state: the state after `breach.step`.
        row: the row that was judged.
    """
    if not row.n:
        return Reading(Condition.HOLD, detail=f"{row.percentile}: no request in the window")
    if row.over is None:
        return Reading(Condition.UNMEASURABLE, detail=f"{row.percentile}: {row.note}")
    if state.frozen or row.status in (Verdict.INSUFFICIENT, Verdict.NO_DATA):
        return Reading(Condition.HOLD, detail=f"{row.percentile}: {row.note}")
    if state.firing:
        return Reading(Condition.BAD, Severity.PAGE, detail(row))
    return Reading(Condition.GOOD, detail=detail(row))

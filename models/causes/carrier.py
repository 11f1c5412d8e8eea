"""Which cohort carries the slow requests?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tailbudget.models.causes.picture import Picture
from tailbudget.schemas.sections import CohortRow

_MOST: Final = 50.0  # per cent of the slow requests: with the larger part of them a cohort carries
_TIMES: Final = 2.0  # its share of the traffic: less is how any large cohort looks


@dataclass(frozen=True, slots=True)
class Carrier:
    """A cohort that has the larger part of the slow requests.

    Attributes:
        cohort: "dimension=value".
        sentence: its shares.
    """

    cohort: str
    sentence: str


def carrier(picture: Picture) -> Carrier | None:
    """Return the value of one dimension that carries the slow requests; None when none does.

    Flags of caches and replicas are causes of their own and not among them.
    """
    plain = {values.dimension for values in picture.others}
    rows = [row for row in picture.found.cohorts if row.dimension in plain and _carries(row)]
    if not rows:
        return None
    row = max(rows, key=_beyond)
    return Carrier(
        f"{row.dimension}={row.value}",
        f"{row.dimension}={row.value} is {row.traffic_share_pct:.3g} % of the requests and "
        f"{row.slow_share_pct:.3g} % of the slow ones",
    )


def _carries(row: CohortRow) -> bool:
    slow, traffic = row.slow_share_pct, row.traffic_share_pct
    return slow is not None and traffic is not None and slow >= max(_MOST, _TIMES * traffic)


def _beyond(row: CohortRow) -> float:
    return (row.slow_share_pct or 0.0) - (row.traffic_share_pct or 0.0)

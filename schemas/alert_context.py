"""What an alert says beside its own figures: where to look, and what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AlertContext:
    """What is known when an alert changes; the fields are those of `Alert` of the same name.

    Attributes:
        tail_driver: stage that makes slow requests slow.
        tail_delta_ms: how much more of it slow requests have than fast ones.
        tail_share_pct: its part of the whole difference.
        worst_cohort: cohort with most of the slow requests, as text.
        worst_share_pct: its part of the slow requests.
        worst_traffic_pct: its part of all requests.
        cause: named cause, in words.
        evidence: the figures that speak for it.
        first_step: what to do first.
        request_id: a slow request to look at.
        link: where a person sees more.
    """

    tail_driver: str | None = None
    tail_delta_ms: float | None = None
    tail_share_pct: float | None = None
    worst_cohort: str = ""
    worst_share_pct: float | None = None
    worst_traffic_pct: float | None = None
    cause: str = ""
    evidence: tuple[str, ...] = ()
    first_step: str = ""
    request_id: str = ""
    link: str = ""

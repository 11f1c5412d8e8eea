"""What is kept of shape and anomaly models in ClickHouse; the fields are the columns, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OVER: Final = ("ended", "accepted", "lost")
"""Phases with which an anomaly does not go on."""


@dataclass(frozen=True, slots=True)
class AnomalyRow:
    """One change of an anomaly; service, stage, start and phase identify it.

    Attributes:
        service: the service's name.
        stage: which stage.
        cohorts: texts of the cohorts that are or were slower.
        phase: "started", "spread", "ended" or "accepted"; "lost" when nobody watches it any more.
        test: which kind of change was found.
        onset_ns: when the stage became slower.
        started_ns: when that was found.
        at_ns: when this change was.
        effect_pct: per cent of the expected time; None where no row tells it.
        low_pct: lower end of its 95 % interval.
        high_pct: upper end.
        effect_ms: the same in milliseconds a request.
        low_ms: lower end.
        high_ms: upper end.
        expected_ms: mean time expected for the shapes that came.
        measured_ms: mean time measured.
        n: rows since the onset.
        deploy: version of the nearest deploy before the onset; empty when there is none.
        cause: named by the newest report; empty when none is.
    """

    service: str
    stage: str
    cohorts: tuple[str, ...]
    phase: str
    test: str
    onset_ns: int
    started_ns: int
    at_ns: int
    effect_pct: float | None = None
    low_pct: float | None = None
    high_pct: float | None = None
    effect_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    expected_ms: float | None = None
    measured_ms: float | None = None
    n: int = 0
    deploy: str = ""
    cause: str = ""


@dataclass(frozen=True, slots=True)
class ShapeModelRow:
    """What is expected of a stage of a cohort.

    Attributes:
        service: the service's name.
        stage: which stage.
        cohort: text of the cohort.
        at_ms: event time.
        state: what is known of it, one of `schemas.anomalies.State`.
        terms: the terms that count.
        coefficients: milliseconds a unit of each.
        rows: that it was learnt from, faded.
        r2: how well the best covariate explains the stage; None when nobody measured it.
        sigma: standard deviation of ln(measured / expected); None while it is learnt.
    """

    service: str
    stage: str
    cohort: str
    at_ms: int
    state: str
    terms: tuple[str, ...]
    coefficients: tuple[float, ...]
    rows: float
    r2: float | None
    sigma: float | None


@dataclass(frozen=True, slots=True)
class ColdWindowRow:
    """A span in which replicas were, or seemed, cold.

    Attributes:
        service: the service's name.
        version: what was deployed; of a suspected start the instance.
        start_ms: when it begins.
        end_ms: when it ends.
        source: "deploy", "scale_up" or "suspected".
        learnt_min: minutes until the service is warm, learnt; None while that is not known.
    """

    service: str
    version: str
    start_ms: int
    end_ms: int
    source: str
    learnt_min: float | None


@dataclass(frozen=True, slots=True)
class SignalRow:
    """One value that hardware, an engine or a platform measured of itself.

    Attributes:
        service: the service's name.
        instance: the replica; empty when it is of the whole service.
        name: what was measured.
        at_ms: when.
        value: finite.
    """

    service: str
    instance: str
    name: str
    at_ms: int
    value: float

"""Two audits made by hand: a breach with everything measured, and one with almost nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from tailbudget.schemas.budgets import KeptBudget, KeptSilence
from tailbudget.schemas.comparison import Change, Comparison, Part
from tailbudget.schemas.plots import Plots, Slot
from tailbudget.schemas.proposals import (
    Cause,
    CauseName,
    LoadPoint,
    Optimization,
    Recommendation,
    StageBudget,
    SupportedSlo,
)
from tailbudget.schemas.regressions import KeptRegression, StageState
from tailbudget.schemas.sections import (
    CohortRow,
    ColdStart,
    ColdWindow,
    Collinear,
    PerUnit,
    ShapeBand,
    ShapeRow,
    StageRole,
    StageRow,
    SuspectedStart,
)
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.verdicts import Audit, Percentile, Provenance, TailDriver, Verdict

T0_NS: Final = 1_772_445_600_000_000_000  # 2026-03-02T10:00:00Z
MINUTE_NS: Final = 60_000_000_000

SLO: Final = SloTarget(p50_ms=60, p95_ms=180, p99_ms=200)

HOSTILE: Final = (
    "a|b",
    "`code` ``more``",
    "back\\slash|pipe\\",
    "<script>alert('x')</script>",
    "</script><img src=http://127.0.0.1:9/x onerror=alert(1)>",
    "line one\nline two\r\n# three",
    "\u202eright to left\u2066",
    "שלום עולם",
    "\x1b[31mred\x1b[0m\x07",
    "[link](http://example.invalid) ![image](x)",
    "*bold* _under_ ~~gone~~ $x$ &lt; &#60;",
    "- item",
    "1. one",
    "{{ 7 * 7 }} {% raw %} %s {0}",
    "[bold red]rich[/] :smile:",
    "日本語のルート",
    "   ",
    "",
    "x" * 5_000,
)
"""Names that whoever sends records may choose."""


def breach() -> Audit:
    """Return the audit of a fraud model whose feature lookup is slow on one bulk route."""
    return Audit(
        verdict=Verdict.BREACH,
        provenance=_provenance(),
        end_to_end=_end_to_end(),
        stages=_stages(),
        tail_driver=TailDriver("feature_lookup", 6.2, 271.4, 265.2, 92.4),
        cohorts=_cohorts(),
        ledger={
            "accepted": 48_200,
            "failed": 130,
            "rejected.not_json": 12,
            "missing.negative_stage": 3,
            "late": 41,
        },
        budgets=_budgets(),
        regressions=_regressions(),
        stage_states=(
            StageState("feature_lookup", "alarmed", 1),
            StageState("feature_lookup", "ready", 2),
        ),
        silences=(
            KeptSilence("p99", "2026-03-02T11:00:00.000Z", "2026-03-02T13:00:00.000Z", "load test"),
        ),
        warnings=(
            "130 of 48,200 requests failed (0.27 %)",
            "12 records are not in the figures: rejected.not_json 12",
        ),
        shape=_shape(),
        shape_bands=(
            ShapeBand("batch_size", "slow", 83, 200, 200, 200, 200),
            ShapeBand("batch_size", "fast", 204, 1, 4, 8, 12),
            ShapeBand("sequence_length", "slow", 83, 118, 402, 511, 512),
            ShapeBand("sequence_length", "fast", 204, 121, 398, 509, 512),
        ),
        collinear=(Collinear("batch_size", "payload_kb", 0.973),),
        per_unit=(
            PerUnit("total", "sequence_length", 2_031, 0.402, 2.71, 8.13),
            PerUnit("model", "sequence_length", 2_031, 0.154, 0.391, 0.512),
        ),
        cold_start=_cold_start(),
        causes=_causes(),
        optimizations=_optimizations(),
        recommendation=_recommendation(),
        baseline=_baseline(),
        plots=_plots(),
    )


def sparse() -> Audit:
    """Return the audit of 12 requests of which little more than their number is known."""
    few = "insufficient (n=12; this p99 is the maximum)"
    insufficient = Verdict.INSUFFICIENT
    return Audit(
        verdict=insufficient,
        provenance=Provenance(
            service="chat",
            start="2026-03-02T10:00:00.000Z",
            end="2026-03-02T10:00:10.000Z",
            n=12,
            n_ok=11,
            n_failed=1,
            slo=SloTarget(p99_ms=1_500),
        ),
        end_to_end=(
            Percentile("p50", 210.0, None, None, insufficient, "all", "", 12, None),
            Percentile("p95", None, None, None, insufficient, "all", "failed", 12, None),
            Percentile("p99", None, 1_500.0, None, insufficient, "all", f"failed; {few}", 12, 1),
            Percentile("max", None, None, None, None, "all", "failed", 12, None),
        ),
        stages=(),
        tail_driver=None,
        cohorts=(),
        ledger={},
        warnings=(),
        causes=(
            Cause(
                CauseName.UNKNOWN,
                "",
                0.0,
                (),
                (),
                ("Send <stage>_ms columns: without them no cause can be told.",),
            ),
        ),
        refused="12 requests are too few; P99 takes 1,000",
    )


def hostile(text: str) -> Audit:
    """Return an audit in which every name and every sentence from outside is `text`."""
    whole = breach()
    cold = whole.cold_start
    baseline = whole.baseline
    plots = whole.plots
    advice = whole.recommendation
    driver = whole.tail_driver
    assert cold is not None
    assert baseline is not None
    assert plots is not None
    assert advice is not None
    assert driver is not None
    return replace(
        whole,
        provenance=replace(whole.provenance, service=text, source=text, assumptions=(text,)),
        end_to_end=tuple(replace(row, note=text) for row in whole.end_to_end),
        stages=tuple(replace(row, stage=text) for row in whole.stages),
        tail_driver=replace(driver, stage=text),
        cohorts=tuple(replace(row, dimension=text, value=text) for row in whole.cohorts),
        warnings=(text,),
        budgets=tuple(replace(row, objective=text) for row in whole.budgets),
        silences=tuple(replace(one, alert=text, reason=text) for one in whole.silences),
        regressions=tuple(
            replace(one, stage=text, cohorts=(text,), deploy=text, signals=(text,))
            for one in whole.regressions
        ),
        stage_states=tuple(replace(one, stage=text) for one in whole.stage_states),
        shape=tuple(replace(row, stage=text, covariate=text, unit=text) for row in whole.shape),
        shape_bands=tuple(replace(row, covariate=text) for row in whole.shape_bands),
        collinear=(Collinear(text, text, 0.9),),
        per_unit=tuple(replace(row, stage=text, covariate=text) for row in whole.per_unit),
        cold_start=replace(
            cold,
            deploys=tuple(replace(window, version=text) for window in cold.deploys),
            suspected=tuple(replace(start, instance=text) for start in cold.suspected),
            note=text,
        ),
        causes=tuple(
            replace(cause, stage=text, evidence=(text,), against=(text,), cohort=text)
            for cause in whole.causes
        ),
        optimizations=tuple(
            replace(fix, fix=text, verify=text, basis=text, key=text) for fix in whole.optimizations
        ),
        recommendation=replace(advice, reason=text, first_step=text, mitigation=text),
        baseline=replace(
            baseline, changes=tuple(replace(one, name=text) for one in baseline.changes)
        ),
        plots=replace(
            plots,
            scatter_stage=text,
            scatter_covariate=text,
            scatter=tuple((x, y, text) for x, y, _ in plots.scatter),
            cold_windows=tuple(replace(window, version=text) for window in plots.cold_windows),
        ),
    )


def _provenance() -> Provenance:
    return Provenance(
        service="fraud-scoring",
        start="2026-03-02T10:00:00.000Z",
        end="2026-03-02T12:00:00.000Z",
        n=48_200,
        n_ok=48_070,
        n_failed=130,
        slo=SLO,
        weighted=True,
        source="fraud.parquet",
        assumptions=(
            "Stages are the columns that end in _ms: feature_lookup, model, queue.",
            "Times without a zone are UTC.",
        ),
    )


def _end_to_end() -> tuple[Percentile, ...]:
    ok, breached, at_risk = Verdict.OK, Verdict.BREACH, Verdict.AT_RISK
    n, successes = 48_200, 48_070
    return (
        Percentile("p50", 41.3, 60.0, 18.7, ok, "all", "", n, 4_120),
        Percentile("p95", 171.0, 180.0, 9.0, at_risk, "all", "", n, 2_310),
        Percentile("p99", 480.2, 200.0, -280.2, breached, "all", "", n, 1_980),
        Percentile("max", None, None, None, None, "all", "over 5,000 ms (timeout)", n, None),
        Percentile("p50", 41.2, 60.0, 18.8, ok, "success", "", successes, 3_990),
        Percentile("p95", 168.4, 180.0, 11.6, at_risk, "success", "", successes, 2_180),
        Percentile("p99", 455.7, 200.0, -255.7, breached, "success", "", successes, 1_850),
        Percentile("max", 1_912.4, None, None, None, "success", "", successes, None),
        Percentile("p50", 43.9, 60.0, 16.1, ok, "scheduled", "", n, 4_402),
        Percentile("p95", 190.6, 180.0, -10.6, breached, "scheduled", "", n, 2_600),
        Percentile("p99", 512.8, 200.0, -312.8, breached, "scheduled", "", n, 2_090),
    )


def _stages() -> tuple[StageRow, ...]:
    n = 48_070
    return (
        StageRow(
            "unattributed",
            n,
            1.12,
            3.4,
            5.9,
            1.1,
            4.5,
            3.4,
            1.2,
            role=StageRole.UNATTRIBUTED,
            p99_share_pct=1.5,
            tail_only=False,
            delta_interval_ms=(2.9, 3.9),
        ),
        StageRow(
            "feature_lookup",
            n,
            6.01,
            94.8,
            280.4,
            6.2,
            271.4,
            265.2,
            92.4,
            p99_share_pct=81.7,
            tail_only=True,
            delta_interval_ms=(251.9, 278.3),
        ),
        StageRow(
            "model",
            n,
            18.4,
            29.7,
            44.1,
            18.2,
            33.9,
            15.7,
            5.5,
            p99_share_pct=10.2,
            tail_only=False,
            delta_interval_ms=(13.8, 17.4),
        ),
        StageRow(
            "queue",
            n,
            7.3,
            15.6,
            22.8,
            7.2,
            9.9,
            2.7,
            0.941,
            p99_share_pct=3.0,
            tail_only=False,
            delta_interval_ms=(-0.312, 5.6),
        ),
        StageRow(
            "scoring",
            900,
            25.1,
            46.0,
            None,
            25.4,
            43.8,
            18.4,
            None,
            role=StageRole.CONTAINER,
        ),
    )


def _cohorts() -> tuple[CohortRow, ...]:
    return (
        CohortRow("route", "bulk", 3_860, 1_204.0, 748.3, 92.1, 8.01, 152.6),
        CohortRow("route+region", "bulk+eu", 1_930, 1_190.0, 734.3, 46.0, 4.0, 431.0),
        CohortRow("region", "eu", 24_100, 470.1, 14.4, 51.2, 50.0, 448.8),
        CohortRow("route", "interactive", 44_190, 152.6, -303.1, 7.9, 91.7, 1_204.0),
        CohortRow("route", "canary", 150, None, None, 0.02, 0.311, 456.0),
    )


def _shape() -> tuple[ShapeRow, ...]:
    n = 48_070
    return (
        ShapeRow(
            "feature_lookup",
            "batch_size",
            n,
            0.918,
            1.33,
            4.71,
            slope_interval_ms=(1.31, 1.35),
            quadratic_r2=0.921,
            loglog_r2=0.884,
            exponent=0.742,
            unit="row",
        ),
        ShapeRow(
            "model", "batch_size", n, 0.412, 0.0813, 17.9, (0.0791, 0.0835), 0.413, 0.39, 0.21
        ),
        ShapeRow("total", "sequence_length", n, 0.00312, 0.0104, 55.2),
        ShapeRow("queue", "payload_kb", 1, None, None, None),
    )


def _regressions() -> tuple[KeptRegression, ...]:
    times = ("2026-03-02T11:01:07.250Z", "2026-03-02T11:01:08.500Z")
    bulk = ("route=bulk",)
    over = KeptRegression(
        "model", "ended", *times, "2026-03-02T11:09:00.000Z", bulk, None, None, None, None, None,
        None, "", "",
    )  # fmt: skip
    goes_on = KeptRegression(
        "feature_lookup", "spread", *times, None, (*bulk, "route=web"), 61.4, 55.2, 67.6, 12.1,
        19.7, 31.8, "v41", "cache_miss",
        ("hit_ratio of cache-2 fell from 0.95 to 0.41 with the onset",),
    )  # fmt: skip
    return goes_on, over


def _budgets() -> tuple[KeptBudget, ...]:
    at, end = "2026-03-02T11:59:50.000Z", "2026-03-03T04:10:00.000Z"
    return (
        KeptBudget("latency", at, 4_820_000, 60_250, 99.0, -25.0, 12.5, 7.4, at, "firing"),
        KeptBudget("failures", at, 4_820_000, 1_310, 99.95, 45.6, None, 1.2, end, "resolved"),
        KeptBudget("bulk", at, 0, 0, 99.0, None, None, None, None, "no_data"),
    )


def _cold_start() -> ColdStart:
    return ColdStart(
        deploys=_windows(),
        excluded=1_204,
        unfiltered_p99_ms=480.2,
        filtered_p99_ms=471.9,
        verdict="not_cold_start",
        suspected=(
            SuspectedStart(
                "idle_gap", "2026-03-02T11:12:04.000Z", "scorer-7", 912.0, 14, 1_812.0, 41.0
            ),
            SuspectedStart("opening_wave", "2026-03-02T10:00:00.000Z", "", None, 9, 901.0, 40.2),
        ),
        note="P99 outside of cold windows is 471.9 ms: deploys do not explain the breach.",
    )


def _windows() -> tuple[ColdWindow, ...]:
    return (
        ColdWindow(T0_NS + 30 * MINUTE_NS, T0_NS + 35 * MINUTE_NS, "v2.4.1", "deploy"),
        ColdWindow(T0_NS + 90 * MINUTE_NS, T0_NS + 95 * MINUTE_NS, "", "scale_up"),
    )


def _causes() -> tuple[Cause, ...]:
    return (
        Cause(
            CauseName.INPUT_SHAPE,
            "feature_lookup",
            0.91,
            (
                "batch_size explains 91.8 % of the variance of feature_lookup.",
                "route=bulk sends batches of 200 rows and is 92.1 % of the slow requests.",
            ),
            ("queue grows by 2.7 ms only: the work itself is slow, not the wait for it.",),
            ("Log the number of rows that each lookup fetches.",),
            cohort="route=bulk",
            covariate="batch_size",
        ),
        Cause(
            CauseName.CACHE_MISS,
            "feature_lookup",
            0.21,
            ("feature_lookup has two modes, at 6 and at 260 ms.",),
            ("No cache_hit column: a miss ratio was not measured.",),
            ("Send cache_hit (0 or 1) with each request.",),
        ),
    )


def _optimizations() -> tuple[Optimization, ...]:
    return (
        Optimization(
            "Fetch all features of a batch in one request",
            CauseName.INPUT_SHAPE,
            254.0,
            (231.0, 269.0),
            16,
            15.9,
            "none",
            reversible=True,
            verify="feature_lookup P99 of route=bulk below 40 ms for a day",
            key="batched_fetch",
            basis="lookups of 1,024 sampled requests taken as one of 8 rows",
        ),
        Optimization(
            "Send route=bulk to replicas of its own",
            CauseName.INPUT_SHAPE,
            118.0,
            (96.0, 140.0),
            12,
            9.83,
            "none",
            reversible=True,
            verify="P99 of route=interactive below 160 ms",
            key="route_away",
            horizon="short",
            basis="sampled requests without the cohort",
        ),
        Optimization(
            "Cache features for a minute",
            CauseName.CACHE_MISS,
            None,
            None,
            24,
            None,
            "low",
            reversible=True,
            verify="hit ratio above 80 %",
            key="feature_cache",
        ),
    )


def _recommendation() -> Recommendation:
    return Recommendation(
        choice="fix_tail",
        reason="The batched fetch brings P99 from 480.2 to about 226 ms; with bulk on its own "
        "replicas the other routes hold 152.6 ms.",
        first_step="Fetch all features of a batch in one request.",
        mitigation="Send route=bulk to replicas of its own.",
        supported=(
            SupportedSlo("p50", 41.3, 45.9, 10.0, 95.0, 48_200),
            SupportedSlo("p95", 171.0, 191.2, 10.0, 95.0, 48_200),
            SupportedSlo("p99", 480.2, 549.6, 10.0, 95.0, 48_200),
        ),
        budgets=(
            StageBudget("feature_lookup", 163.4, 81.7),
            StageBudget("model", 20.4, 10.2),
            StageBudget("queue", 6.0, 3.0),
        ),
        load=(
            LoadPoint(5.0, 0.31, 12_100, 410.0),
            LoadPoint(10.0, 0.72, 33_800, 492.0),
            LoadPoint(20.0, 1.9, 412, None),
        ),
    )


def _baseline() -> Comparison:
    return Comparison(
        before_n=51_000,
        now_n=48_200,
        changes=(
            Change("total", "", "p99", 180.3, 480.2, 299.9, (280.1, 318.8), 2.1e-9, changed=True),
            Change("stage", "queue", "p99", 22.1, 22.8, 0.7, (-0.4, 1.9), 0.214, changed=False),
            Change("cohort", "route=canary", "p99", None, None, None, None, None, changed=None),
        ),
        p99_change_ms=299.9,
        parts=(
            Part("workload_mix", 271.0, "route=bulk grew from 0.4 % to 8.01 % of traffic"),
            Part("regression", 21.3, "the same requests at the baseline's mix"),
            Part("cold_start", 8.3, "unfiltered less filtered"),
            Part("failures", -0.7, ""),
        ),
        verdict="workload",
        note="P99 rose by 299.9 ms, of which 271 ms is the changed mix of requests.",
    )


def _plots() -> Plots:
    """Return points of curves, without chance."""
    edges = [20.0 * 2 ** (k / 8) for k in range(54)]
    body = [30_000 * math.exp(-(((k - 9) / 5) ** 2)) for k in range(54)]
    tail = [420 * math.exp(-(((k - 37) / 4) ** 2)) for k in range(54)]
    counts = [round(low + high) for low, high in zip(body, tail, strict=True)]
    return Plots(
        histogram=((edges[0] * 2 ** (-1 / 8), 0), *zip(edges, counts, strict=True)),
        timeline=tuple(_slot(minute) for minute in range(120)),
        scatter_stage="feature_lookup",
        scatter_covariate="batch_size",
        scatter=tuple(_point(i) for i in range(200)),
        cold_windows=_windows(),
    )


def _slot(minute: int) -> Slot:
    start = f"2026-03-02T{10 + minute // 60}:{minute % 60:02}:00.000Z"
    if minute in (70, 71):
        return Slot(start, 0, 0, None, None)
    cold = 700 if 30 <= minute < 35 else 0
    return Slot(start, 400, minute % 3, 41 + minute % 5, 460 + 7 * (minute % 9) + cold)


def _point(i: int) -> tuple[float, float, str]:
    rows = 200.0 if i % 12 == 0 else 1.0 + i % 12
    return rows, 4.7 + 1.33 * rows + 12 * math.sin(i) ** 2, f"r{i}"

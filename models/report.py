"""The whole report: what was measured, why it is so, and what to do, from one evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tailbudget.models.audit import provenance_of
from tailbudget.models.causes import causes
from tailbudget.models.cautions import cautions, left_out, load_cautions
from tailbudget.models.cohort_table import cohort_table, totals_of
from tailbudget.models.cold_start import cold_start
from tailbudget.models.compare import compare
from tailbudget.models.evidence import Evidence
from tailbudget.models.optimizations import optimizations
from tailbudget.models.plots import plots
from tailbudget.models.recommendation import recommendation
from tailbudget.models.refusal import is_attributed, may_recommend, refusal
from tailbudget.models.select import take
from tailbudget.models.shape_table import shape_table
from tailbudget.models.snapshot import snapshot, verdict
from tailbudget.models.stage_table import stage_table
from tailbudget.models.tail import SLOW
from tailbudget.models.token_times import token_timings
from tailbudget.schemas.catalogue import Catalogue
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.ledger import ACCEPTED
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.token_timing import GoodputTarget, TokenTiming
from tailbudget.schemas.verdicts import Audit, Provenance, Verdict


@dataclass(frozen=True, slots=True)
class Options:
    """What a report is judged by, and what it says of its origin.

    Attributes:
        slo: what was promised; None judges nothing.
        slow_request_threshold: "p95", "p99" or milliseconds: where slow begins.
        catalogue: the fixes that are known.
        workload: "online" or "batch" as declared; None is to be seen.
        external: stages that are calls to other processes though their name does not say so.
        baseline: what to compare with; None compares nothing.
        source: what was read, such as a file's name.
        assumptions: what was found rather than told, in sentences.
        times_known: whether requests have times; without, nothing is said of when they came.
        token_timing: what the source means by times of tokens; None where nobody says.
        goodput: what a good request keeps; None counts none.
    """

    catalogue: Catalogue
    slo: SloTarget | None = None
    slow_request_threshold: str | float = SLOW[0]
    workload: str | None = None
    external: tuple[str, ...] = ()
    baseline: Evidence | None = None
    source: str = ""
    assumptions: tuple[str, ...] = field(default=())
    times_known: bool = True
    token_timing: TokenTiming | None = None
    goodput: GoodputTarget | None = None


def report(evidence: Evidence, options: Options) -> Audit:
    """Return the report of a span.

    Batch work gets its measured sections and a refusal; so does what has no stages.

    Raises:
        ValueError: the threshold names no percentile.
    """
    if not options.times_known:
        evidence = _timeless(evidence)
    ledger = Counter[str]()
    for (_, reason), count in evidence.total.ledger.items():
        ledger[reason] += count
    provenance = _provenance(evidence, options, ledger)
    if not len(evidence.total.pane_ns):
        return _empty(provenance, ledger)
    found, notes = findings(evidence, options)
    named = causes(evidence, found, external=options.external)
    totals = totals_of(evidence.cohorts)
    limits = cautions(evidence.total, totals, ledger, options.slo) + load_cautions(evidence)
    audit = Audit(
        verdict=found.verdict,
        provenance=provenance,
        end_to_end=found.end_to_end,
        stages=found.stages,
        tail_driver=found.tail_driver,
        cohorts=found.cohorts,
        ledger=dict(sorted(ledger.items())),
        warnings=(*limits, *notes),
        shape=found.shape,
        shape_bands=found.shape_bands,
        collinear=found.collinear,
        per_unit=found.per_unit,
        cold_start=found.cold_start,
        causes=named,
        baseline=None if options.baseline is None else compare(options.baseline, evidence),
        plots=plots(evidence, found),
        token_timings=token_timings(
            evidence.total, options.token_timing, options.goodput, _span_ns(evidence, options)
        ),
    )
    return _concluded(audit, evidence, found, options)


def findings(evidence: Evidence, options: Options) -> tuple[Findings, tuple[str, ...]]:
    """Return the measuring sections of an evidence that has requests, and notes on them."""
    total, threshold = evidence.total, options.slow_request_threshold
    rows = snapshot(total, options.slo)
    stages = stage_table(total, threshold)
    shape = shape_table(total, threshold)
    found = Findings(
        verdict=verdict(rows),
        end_to_end=rows,
        stages=stages.rows,
        tail_driver=stages.driver,
        shape=shape.rows,
        shape_bands=shape.bands,
        collinear=shape.collinear,
        per_unit=shape.per_unit,
        cohorts=cohort_table(evidence.cohorts),
        cold_start=cold_start(evidence, options.slo),
        slo=options.slo,
        slow_request_threshold=threshold,
    )
    return found, (*stages.notes, *shape.notes)


def _concluded(audit: Audit, evidence: Evidence, found: Findings, options: Options) -> Audit:
    """Add fixes and the recommendation, or why there is none."""
    no = refusal(evidence, declared=options.workload)
    if no is not None:
        return replace(audit, causes=(), refused=f"{no.detail}. {no.handoff}.")
    why_not = may_recommend(found, audit.causes)
    fixes = () if why_not else optimizations(evidence, found, audit.causes, options.catalogue)
    return replace(
        audit,
        optimizations=fixes,
        recommendation=recommendation(evidence, found, audit.causes, fixes),
        refused="" if is_attributed(found) else why_not,
    )


def _provenance(evidence: Evidence, options: Options, ledger: Mapping[str, int]) -> Provenance:
    told = provenance_of(
        evidence.total, options.slo, start_ns=evidence.start_ns, end_ns=evidence.end_ns
    )
    known = options.times_known and bool(len(evidence.total.pane_ns))
    return replace(
        told,
        start=told.start if known else None,
        end=told.end if known else None,
        slow_request_threshold=options.slow_request_threshold,
        weighted=told.n != ledger.get(ACCEPTED, 0),
        source=options.source,
        assumptions=options.assumptions,
    )


def _span_ns(evidence: Evidence, options: Options) -> int | None:
    return evidence.end_ns - evidence.start_ns if options.times_known else None


def _timeless(evidence: Evidence) -> Evidence:
    """Leave out all that goes by time: its requests all bear the time of reading."""
    return replace(
        evidence,
        timeline=take(evidence.timeline, np.zeros(0, np.intp), {}),
        instances=None,
        cold_windows=(),
        deploys_known=False,
        warm=None,
        warm_cohorts=None,
    )


def _empty(provenance: Provenance, ledger: Mapping[str, int]) -> Audit:
    return Audit(
        verdict=Verdict.NO_DATA,
        provenance=provenance,
        end_to_end=(),
        stages=(),
        tail_driver=None,
        cohorts=(),
        ledger=dict(sorted(ledger.items())),
        warnings=("no request is in the figures", *left_out(ledger)),
    )

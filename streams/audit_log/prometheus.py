"""Histograms of a scrape of Prometheus: evidence of its own kind, never mixed with requests."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from tailbudget.models.buckets import Buckets
from tailbudget.models.figures import figure
from tailbudget.schemas.errors import ConfigError, DecodeError
from tailbudget.streams.audit_log.kinds import is_table
from tailbudget.streams.audit_log.opened import Opened, damage

MAX_BYTES: Final = 64_000_000
_BEGINS: Final = re.compile(rb"\s*# (HELP|TYPE) [A-Za-z_:]")
_END: Final = "# EOF"
_MS_PER: Final = {"seconds": 1e3, "milliseconds": 1.0, "ms": 1.0, "microseconds": 1e-3, "us": 1e-3}


@dataclass(frozen=True, slots=True)
class Histogram:
    """One histogram of latency.

    Attributes:
        name: of the metric.
        labels: those of the series, "le" left out.
        buckets: its counts, in milliseconds.
        unit: of the metric, by its name; None where it names none and milliseconds are taken.
    """

    name: str
    labels: tuple[tuple[str, str], ...]
    buckets: Buckets
    unit: str | None


def histograms(text: str) -> Iterator[Histogram]:
    """Yield the histograms of a scrape, in the order in which they stand there.

    Raises:
        DecodeError: it is no text of Prometheus.
    """
    series: defaultdict[tuple[str, tuple[tuple[str, str], ...]], dict[float, float]]
    series, sums = defaultdict(dict), {}
    try:
        for family in _families(text):
            for sample in family.samples:
                labels = dict(sample.labels)
                if sample.name.endswith("_bucket") and "le" in labels:
                    le = float(labels.pop("le"))
                    key = (sample.name.removesuffix("_bucket"), tuple(sorted(labels.items())))
                    series[key][le] = sample.value
                elif sample.name.endswith("_sum"):
                    sums[sample.name.removesuffix("_sum"), tuple(sorted(labels.items()))] = (
                        sample.value
                    )
    except (ValueError, KeyError, IndexError) as error:
        raise DecodeError(
            f"no text of Prometheus: {error}", remedy="give what /metrics answers"
        ) from error
    for (name, labels_), counts in series.items():
        found = _histogram(name, labels_, counts, sums.get((name, labels_)))
        if found is not None:
            yield found


def _families(text: str) -> Iterator[Metric]:
    """Yield the metrics of either text form; that of OpenMetrics says where it ends."""
    if text.rstrip().endswith(_END):
        yield from openmetrics.text_string_to_metric_families(text.rstrip() + "\n")  # type: ignore[no-untyped-call]
    else:
        yield from text_string_to_metric_families(text)


def _histogram(
    name: str,
    labels: tuple[tuple[str, str], ...],
    counts: dict[float, float],
    total: float | None,
) -> Histogram | None:
    unit = next((word for word in _MS_PER if name.endswith(f"_{word}")), None)
    scale = _MS_PER[unit] if unit else 1.0
    upper = sorted(counts)
    finite = all(math.isfinite(counts[le]) for le in upper)
    if not finite or math.isnan(upper[0]):
        return None
    try:
        buckets = Buckets(
            tuple(round(le * scale, 9) for le in upper),
            tuple(int(counts[le]) for le in upper),
            None if total is None or not math.isfinite(total) else total * scale,
        )
    except ValueError:
        return None
    return Histogram(name, labels, buckets, unit)


def is_scrape(path: Path) -> bool:
    """Return whether a file is a scrape, by its beginning; a file that cannot be read is none."""
    if is_table(path):
        return False
    try:
        with damage(str(path)):
            file = Opened(path)
    except (ConfigError, DecodeError):
        return False
    try:
        head = file.head
    finally:
        file.close()
    return _BEGINS.match(head) is not None or (b"_bucket{" in head and b'le="' in head)


def read_scrape(path: Path) -> str:
    """Return the text of a scrape, its compression taken off.

    Raises:
        DecodeError: it is damaged, or longer than is read.
    """
    with damage(str(path)):
        file = Opened(path)
        try:
            text = file.stream.read(MAX_BYTES + 1)
        finally:
            file.close()
    if len(text) > MAX_BYTES:
        raise DecodeError(
            f"{path} is a scrape of more than {MAX_BYTES:,} bytes",
            remedy="have the metrics of one service scraped",
        )
    return text.decode(errors="replace")


def bounds_of(path: Path) -> list[str]:
    """Return what the histograms of a scrape say, a sentence each; nothing where it is none.

    Raises:
        ConfigError: there is no such file.
        DecodeError: it begins like a scrape, and is none.
    """
    if not path.is_file():
        if str(path) != "-" and not path.exists():
            raise ConfigError(f"there is no log {path}", remedy="check the path")
        return []
    if not is_scrape(path):
        return []
    said = ["a scrape of Prometheus: percentiles are bounds, and no request can be attributed"]
    for one in histograms(read_scrape(path)):
        labels = ",".join(f"{key}={value}" for key, value in one.labels)
        ends = [f"p{q * 100:g} {_between(one.buckets.bounds_ms(q))}" for q in (0.5, 0.95, 0.99)]
        mean = one.buckets.mean_ms
        mean_text = "mean unknown" if mean is None else f"mean {figure(mean)} ms"
        unit = "" if one.unit else "; taken for milliseconds, for the name says no unit"
        said.append(
            f"{one.name}{{{labels}}}: n = {one.buckets.n:,}, {', '.join(ends)}, {mean_text}{unit}"
        )
    return said


def _between(bounds: tuple[float, float] | None) -> str:
    return "unknown" if bounds is None else f"in ({bounds[0]:g}, {bounds[1]:g}] ms"

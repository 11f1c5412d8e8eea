"""What a scrape of Prometheus says."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tailbudget.schemas.metrics import METRICS

_LABELS = {metric.name: metric.labels for metric in METRICS}

Samples = dict[str, dict[tuple[str, ...], float]]


def samples_of(text: str) -> Samples:
    """Return the samples by name, and by the values of their labels in the order of the table."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            order = _LABELS.get(sample.name) or _LABELS.get(family.name) or ()
            rest = [name for name in sample.labels if name not in order]
            place = tuple(sample.labels[name] for name in (*order, *rest))
            found.setdefault(sample.name, {})[place] = sample.value
    return found

"""OpenSLO v1: what is read, what is refused with its path, and that what is written reads back."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.objective_settings import settings_of
from tailbudget.schemas.objectives import (
    AlertTiming,
    BurnRule,
    Objective,
    Period,
    Severity,
    Telling,
)
from tailbudget.schemas.settings import Settings
from tailbudget.streams.openslo.documents import KINDS
from tailbudget.streams.openslo.read import read
from tailbudget.streams.openslo.settings import with_openslo
from tailbudget.streams.openslo.write import write

UNTIMED = hypothesis_settings(deadline=None)
"""Machines that run tests are busy."""

DOCUMENTS = """
apiVersion: openslo/v1
kind: DataSource
metadata: {name: records, displayName: request records}
spec: {type: tailbudget, connectionDetails: {}}
---
apiVersion: openslo/v1
kind: Service
metadata:
  name: chat-eu
  labels: {team: [serving, chat]}
  annotations: {tailbudget.io/service: Chat EU}
spec: {description: answers questions}
---
apiVersion: openslo/v1
kind: SLI
metadata: {name: search-latency}
spec:
  thresholdMetric:
    metricSource: {metricSourceRef: records, spec: {metric: total_ms, where: {route: search}}}
---
apiVersion: openslo/v1
kind: AlertNotificationTarget
metadata: {name: on-call}
spec: {target: slack}
---
apiVersion: openslo/v1
kind: AlertCondition
metadata: {name: fast-burn}
spec:
  severity: page
  condition: {kind: burnrate, op: gte, threshold: 14.4, lookbackWindow: 1h, alertAfter: 5m}
---
apiVersion: openslo/v1
kind: AlertPolicy
metadata: {name: page}
spec:
  alertWhenBreaching: true
  alertWhenResolved: true
  conditions: [{conditionRef: fast-burn}]
  notificationTargets: [{targetRef: on-call}]
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: search}
spec:
  service: chat-eu
  indicatorRef: search-latency
  budgetingMethod: Timeslices
  timeWindow:
    - duration: 1M
      isRolling: false
      calendar: {startTime: "2026-01-01 00:00:00", timeZone: America/New_York}
  objectives:
    - {op: lte, value: 800, targetPercent: 99.5, timeSliceTarget: 0.95, timeSliceWindow: 1m}
  alertPolicies: [{alertPolicyRef: page}]
"""

INLINE = {
    "apiVersion": "openslo/v1",
    "kind": "SLO",
    "metadata": {"name": "errors"},
    "spec": {
        "service": "chat",
        "indicator": {
            "metadata": {"name": "ok"},
            "spec": {
                "ratioMetric": {
                    "counter": True,
                    "good": {
                        "metricSource": {
                            "type": "tailbudget",
                            "spec": {"metric": "requests", "status": "ok", "max_ms": 500},
                        }
                    },
                    "total": {
                        "metricSource": {"type": "tailbudget", "spec": {"metric": "requests"}}
                    },
                }
            },
        },
        "budgetingMethod": "Occurrences",
        "timeWindow": [{"duration": "28d", "isRolling": True}],
        "objectives": [{"target": 0.999}],
        "alertPolicies": [
            {
                "kind": "AlertPolicy",
                "metadata": {"name": "slow"},
                "spec": {
                    "alertWhenBreaching": True,
                    "conditions": [
                        {
                            "kind": "AlertCondition",
                            "metadata": {"name": "slow"},
                            "spec": {
                                "severity": "ticket",
                                "condition": {
                                    "kind": "burnrate",
                                    "op": "gt",
                                    "threshold": 3,
                                    "lookbackWindow": "1d",
                                },
                            },
                        }
                    ],
                    "notificationTargets": [
                        {
                            "kind": "AlertNotificationTarget",
                            "metadata": {"name": "mail"},
                            "spec": {"target": "e-mail"},
                        }
                    ],
                },
            }
        ],
    },
}


def test_documents_that_refer_to_each_other() -> None:
    """Every kind is read, by reference, into one objective with its rule and its channel."""
    (one,) = read(DOCUMENTS)
    assert one == Objective(
        service="Chat EU",
        name="search",
        target=Fraction(995, 1000),
        threshold_ms=800,
        cohort=(("route", "search"),),
        period=Period(1, "M", "2026-01-01T00:00:00", "America/New_York"),
        slice_s=60,
        slice_target=Fraction(95, 100),
        rules=(BurnRule(Severity.PAGE, 14.4, 3600, 300, inclusive=True),),
        timing=AlertTiming(pending_s=300),
        telling=Telling(("on-call",), no_data=False),
    )
    kinds = {document["kind"] for document in yaml.safe_load_all(DOCUMENTS)}
    assert kinds == set(KINDS)


def test_a_document_that_holds_all() -> None:
    """Indicator, policy, condition and target may be written out in the SLO."""
    (one,) = read(yaml.safe_dump(INLINE))
    assert (one.target, one.threshold_ms, one.period) == (
        Fraction(999, 1000),
        500,
        Period(28, "d"),
    )
    assert one.rules == (BurnRule(Severity.TICKET, 3, 86_400, 7200),)
    assert one.telling == Telling(("mail",), resolved=False, no_data=False)


def at(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return what sets a value within a document; None removes it."""

    def change(document: dict[str, Any]) -> None:
        node: Any = document
        *way, last = [int(p) if p.isdecimal() else p for p in path.split("/")]
        for part in way:
            node = node[part]
        if value is None:
            del node[last]
        else:
            node[last] = value

    return change


POLICY = "spec/alertPolicies/0/spec"
CONDITION = f"{POLICY}/conditions/0/spec"
RATIO = "spec/indicator/spec/ratioMetric"
THRESHOLD = {
    "thresholdMetric": {"metricSource": {"type": "tailbudget", "spec": {"metric": "total_ms"}}}
}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (at("apiVersion", "openslo/v1alpha"), "apiVersion"),
        (at("kind", "Composite"), "kind"),
        (at("metadata/name", "Not A Label"), "metadata.name"),
        (at("metadata/annotations", {"tailbudget.io/colour": "red"}), "tailbudget.io/colour"),
        (at("metadata/annotations", {"tailbudget.io/min-bad": "few"}), "tailbudget.io/min-bad"),
        (at("spec/priority", 1), "spec.priority"),
        (at("spec/service", None), "spec.service"),
        (at("spec/budgetingMethod", "RatioTimeslices"), "spec.budgetingMethod"),
        (at("spec/budgetingMethod", "Timeslices"), "spec.objectives[0].timeSliceWindow"),
        (at("spec/timeWindow", []), "spec.timeWindow"),
        (at("spec/timeWindow/0/duration", "30"), "spec.timeWindow[0].duration"),
        (at("spec/timeWindow/0/isRolling", False), "spec.timeWindow[0]"),
        (at("spec/objectives/0/target", 1.5), "spec.objectives[0].target"),
        (at("spec/objectives/0/target", 0), "spec.objectives[0].target"),
        (at("spec/objectives/0/targetPercent", 99), "spec.objectives[0]"),
        (at("spec/objectives/0/op", "lte"), "spec.objectives[0].op"),
        (at("spec/objectives/0/timeSliceTarget", 0.9), "spec.objectives[0].timeSliceTarget"),
        (at("spec/objectives/0/compositeWeight", 1), "spec.objectives[0].indicator"),
        (at("spec/indicatorRef", "elsewhere"), "spec.indicator"),
        (at("spec/indicator/spec", THRESHOLD), "spec.objectives[0].op"),
        (at(f"{RATIO}/counter", False), f"{RATIO}/counter"),
        (at(f"{RATIO}/total", None), RATIO),
        (at(f"{RATIO}/good/metricSource/type", "prometheus"), "good.metricSource.type"),
        (at(f"{RATIO}/good/metricSource/spec/query", "up"), "good.metricSource.spec.query"),
        (at(f"{RATIO}/good/metricSource/spec/status", "500"), "good.metricSource.spec.status"),
        (at(f"{RATIO}/good/metricSource/spec/where", {"a": "b"}), "total.metricSource.spec.where"),
        (
            at(f"{RATIO}/good/metricSource/metricSourceRef", "gone"),
            "good.metricSource.metricSourceRef",
        ),
        (at(f"{POLICY}/alertWhenBreaching", None), f"{POLICY}/alertWhenBreaching"),
        (at(f"{POLICY}/notificationTargets", []), f"{POLICY}/notificationTargets"),
        (at(f"{CONDITION}/severity", "catastrophe"), f"{CONDITION}/severity"),
        (at(f"{CONDITION}/condition/op", "lte"), f"{CONDITION}/condition/op"),
        (at(f"{CONDITION}/condition/threshold", 1000), f"{CONDITION}/condition/threshold"),
        (at(f"{CONDITION}/condition/kind", "latency"), f"{CONDITION}/condition/kind"),
        (at(f"{POLICY}/conditions/0", {"conditionRef": "gone"}), "conditions[0].conditionRef"),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_its_path(
    change: Callable[[dict[str, Any]], None], path: str
) -> None:
    """Each such field is named by the path to it, with a remedy."""
    document = yaml.safe_load(yaml.safe_dump(INLINE))
    change(document)
    with pytest.raises(ConfigError) as caught:
        read(yaml.safe_dump(document), "slo.yaml")
    dotted = path.replace("/0", "[0]").replace("/", ".") if path.startswith("spec/") else path
    assert dotted in str(caught.value)
    assert "slo.yaml" in str(caught.value)
    assert caught.value.remedy


def test_a_source_elsewhere_is_refused() -> None:
    """A DataSource of another system, or with connection details of its own, is not ours."""
    elsewhere = DOCUMENTS.replace("type: tailbudget,", "type: prometheus,")
    with pytest.raises(ConfigError, match=r"DataSource/records: spec\.type"):
        read(elsewhere)
    detailed = DOCUMENTS.replace("connectionDetails: {}", "connectionDetails: {topic: x}")
    with pytest.raises(ConfigError, match=r"spec\.connectionDetails\.topic"):
        read(detailed)


def test_policies_of_one_slo_must_agree() -> None:
    """One SLO has one alert: two policies with other targets cannot both be honoured."""
    document = yaml.safe_load(yaml.safe_dump(INLINE))
    other = yaml.safe_load(yaml.safe_dump(document["spec"]["alertPolicies"][0]))
    other["spec"]["notificationTargets"][0]["metadata"]["name"] = "pager"
    document["spec"]["alertPolicies"].append(other)
    with pytest.raises(ConfigError, match=r"spec\.alertPolicies\[1\]"):
        read(yaml.safe_dump(document))


def test_all_problems_are_told_at_once() -> None:
    """Two wrong documents are one error with both paths."""
    wrong = [
        {**INLINE, "metadata": {"name": "a"}, "spec": {}},
        {"apiVersion": "openslo/v1", "kind": "SLI", "metadata": {"name": "b"}, "spec": {}},
    ]
    with pytest.raises(ConfigError, match="problems") as caught:
        read(yaml.safe_dump_all(wrong))
    assert "SLO/a: spec.service" in str(caught.value)
    assert "SLI/b: spec" in str(caught.value)
    with pytest.raises(ConfigError, match="holds no document"):
        read("")


def test_what_has_no_place_is_refused_when_written() -> None:
    """A window that is no whole minutes, or rules without a channel, would not read back."""
    rule = BurnRule(Severity.PAGE, 2, 70, 10)
    channels = Telling(("on-call",))
    one = Objective("chat", "x", Fraction(99, 100), rules=(rule,), telling=channels)
    with pytest.raises(ConfigError, match="70 s"):
        write([one])
    hour = BurnRule(Severity.PAGE, 2, 3600, 300)
    with pytest.raises(ConfigError, match="names no channel"):
        write([Objective("chat", "x", Fraction(99, 100), rules=(hour,))])


labels = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,4})?", fullmatch=True)
hundredths = st.integers(1, 9999).map(lambda n: Fraction(n, 10_000))
periods = st.one_of(
    st.builds(Period, st.integers(1, 90), st.sampled_from("mhdw")),
    st.builds(
        Period,
        st.integers(1, 4),
        st.sampled_from("dwMQY"),
        st.just("2026-01-01T02:30:00"),
        st.sampled_from(["UTC", "Europe/Berlin"]),
    ),
)


@st.composite
def objectives(draw: st.DrawFn) -> Objective:
    """Return an objective that OpenSLO has words for."""
    target = draw(hundredths)
    sliced = draw(st.booleans())
    rules = []
    for _ in range(draw(st.integers(0, 2))):
        long_s = 60 * draw(st.integers(1, 5000))
        factor = draw(st.floats(0.01, 0.99)) / float(1 - target)
        short_s = draw(st.integers(1, long_s))
        severity = draw(st.sampled_from(Severity))
        rules.append(BurnRule(severity, factor, long_s, short_s, draw(st.booleans())))
    channels = tuple(draw(st.lists(labels, min_size=1, max_size=2, unique=True)))
    told = draw(st.booleans())
    return Objective(
        service=draw(st.text(min_size=1, max_size=12)),
        name=draw(labels),
        target=target,
        threshold_ms=draw(st.none() | st.floats(0.5, 1e5)),
        cohort=tuple(
            sorted(draw(st.dictionaries(labels, st.text(max_size=8), max_size=2)).items())
        ),
        period=draw(periods),
        slice_s=60 * draw(st.sampled_from([1, 5])) if sliced else None,
        slice_target=draw(hundredths) if sliced else Fraction(1),
        rules=tuple(rules),
        timing=AlertTiming(
            min_bad=draw(st.integers(1, 99)),
            pending_s=60.0 * draw(st.integers(0, 3)),
            keep_firing_s=draw(st.sampled_from([0.0, 1.5])),
            no_data_s=draw(st.sampled_from([600.0, 30.0])),
        ),
        telling=Telling(channels, resolved=told, no_data=not told) if rules else Telling(),
    )


def test_a_name_with_a_line_separator_reads_back_the_same() -> None:
    """YAML's emitter folds U+0085 to a space unless it is escaped."""
    one = Objective(service="a\x85b", name="a", target=Fraction(1, 2))
    assert read(write([one]))[0].service == one.service


@UNTIMED
@given(objectives())
def test_what_is_written_reads_back_the_same(one: Objective) -> None:
    """Thresholds, cohorts, periods, rules, waits and channels survive the way there and back."""
    assert read(write([one])) == (one,)


@UNTIMED
@given(objectives())
def test_settings_say_what_an_objective_is(one: Objective) -> None:
    """Every objective that OpenSLO has words for can be set in our own settings too."""
    assert settings_of(one).objective(one.service) == one


def test_files_add_to_the_objectives_of_the_settings(tmp_path: Path) -> None:
    """By the name of the service in the records; channels must be set, and names unique."""
    path = tmp_path / "slos.yaml"
    path.write_text(DOCUMENTS, encoding="utf-8")
    errors = {"name": "errors", "target_pct": 99.9}
    values: dict[str, Any] = {
        "openslo": [str(path)],
        "services": {"Chat EU": {"objectives": [errors], "stages": ["queue"]}},
        "chat": [{"name": "on-call", "url": "json://h"}],
    }
    settings = with_openslo(Settings.model_validate(values))
    both = settings.service("Chat EU").slos("Chat EU")
    assert [one.name for one in both] == ["errors", "search"]
    assert both[1] == read(DOCUMENTS)[0]
    assert settings.service("Chat EU").stages == ("queue",)
    for change, said in (
        ({"chat": []}, "which is no channel of ours"),
        ({"services": {"Chat EU": {"objectives": [{**errors, "name": "search"}]}}}, "of that name"),
        ({"defaults": {"cohort_dims": ["region"]}}, "which is no dimension"),
        ({"openslo": [str(tmp_path / "gone.yaml")]}, "cannot be read"),
    ):
        with pytest.raises(ConfigError, match=said):
            with_openslo(Settings.model_validate({**values, **change}))

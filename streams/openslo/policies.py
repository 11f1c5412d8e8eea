"""What alert policies ask for, in our terms: rules, waits, and who is told of what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tailbudget.models.burn import SHORT_SHARE, largest_rate
from tailbudget.schemas.durations import duration_s
from tailbudget.schemas.objectives import BurnRule, Severity, Telling
from tailbudget.schemas.openslo.alerting import (
    AlertCondition,
    AlertNotificationTarget,
    AlertPolicy,
    ConditionSpec,
    PolicySpec,
)
from tailbudget.schemas.openslo.slo import SloPolicy
from tailbudget.streams.openslo.documents import Documents, UnsupportedError
from tailbudget.streams.openslo.marks import SHORT_WINDOW


@dataclass(frozen=True, slots=True)
class Alerting:
    """When an SLO alerts, and who is told.

    Attributes:
        rules: one a policy.
        pending_s: how long a condition must hold; None where no policy says so.
        telling: who is told of what.
    """

    rules: tuple[BurnRule, ...]
    pending_s: float | None
    telling: Telling


def alerting(
    documents: Documents, policies: tuple[SloPolicy, ...], allowed: Fraction
) -> Alerting | None:
    """Return what the policies of an SLO ask for; None without any.

    Raises:
        UnsupportedError: something cannot be honoured, or the policies of the SLO differ in what
            its one alert can have only once.
    """
    found = [
        _policy(documents, policy, f"spec.alertPolicies[{place}]", allowed)
        for place, policy in enumerate(policies)
    ]
    if not found:
        return None
    for place, other in enumerate(found[1:], 1):
        if (other.telling, other.pending_s) != (found[0].telling, found[0].pending_s):
            what = "differs from the first policy in targets, alertWhen* or alertAfter"
            remedy = "one SLO has one alert: make them the same, or write two SLOs"
            raise UnsupportedError(f"spec.alertPolicies[{place}]", what, remedy)
    rules = tuple(rule for one in found for rule in one.rules)
    return Alerting(rules, found[0].pending_s, found[0].telling)


def _policy(documents: Documents, policy: SloPolicy, path: str, allowed: Fraction) -> Alerting:
    spec, path = _resolved(documents, policy, path)
    condition, noted, at = _condition(documents, spec, path)
    burn = condition.condition
    if not spec.alert_when_breaching:
        what = "is not true, so that nobody would ever hear of a breach"
        raise UnsupportedError(f"{path}.alertWhenBreaching", what, "write true")
    if burn.op not in ("gt", "gte"):
        what = f"{burn.op} would alert while all is well"
        raise UnsupportedError(f"{at}.condition.op", what, "write gt or gte")
    limit = largest_rate(allowed)
    if not 0 < burn.threshold < limit:
        what = f"{burn.threshold:g} is never reached: with every event bad it is {limit:g}"
        raise UnsupportedError(f"{at}.condition.threshold", what, f"give 0 to {limit:g}")
    long_s = duration_s(burn.lookback_window)
    rule = BurnRule(
        severity=_severity(condition.severity, f"{at}.severity"),
        factor=burn.threshold,
        long_s=long_s,
        short_s=_short_s(noted, long_s),
        inclusive=burn.op == "gte",
    )
    pending_s = float(duration_s(burn.alert_after)) if burn.alert_after else None
    telling = Telling(
        channels=_channels(documents, spec, path),
        breaching=spec.alert_when_breaching,
        resolved=spec.alert_when_resolved,
        no_data=spec.alert_when_no_data,
    )
    return Alerting((rule,), pending_s, telling)


def _resolved(documents: Documents, policy: SloPolicy, path: str) -> tuple[PolicySpec, str]:
    if policy.alert_policy_ref is not None:
        at = f"{path}.alertPolicyRef"
        named = documents.named(AlertPolicy, policy.alert_policy_ref, at)
        return named.spec, f"{path}, AlertPolicy/{policy.alert_policy_ref}: spec"
    if policy.spec is None:
        raise UnsupportedError(path, "has no spec", "add it")
    return policy.spec, f"{path}.spec"


def _condition(
    documents: Documents, spec: PolicySpec, path: str
) -> tuple[ConditionSpec, Mapping[str, str], str]:
    condition = spec.conditions[0]
    if condition.condition_ref is not None:
        at = f"{path}.conditions[0].conditionRef"
        named = documents.named(AlertCondition, condition.condition_ref, at)
        where = f"{path}.conditions[0], AlertCondition/{condition.condition_ref}: spec"
        return named.spec, named.metadata.annotations, where
    if condition.spec is None or condition.metadata is None:
        raise UnsupportedError(f"{path}.conditions[0]", "has no spec", "add it")
    return condition.spec, condition.metadata.annotations, f"{path}.conditions[0].spec"


def _channels(documents: Documents, spec: PolicySpec, path: str) -> tuple[str, ...]:
    """Return the names of our channels: a target is called as the channel is."""
    names = []
    for place, target in enumerate(spec.notification_targets):
        if target.target_ref is not None:
            at = f"{path}.notificationTargets[{place}].targetRef"
            named = documents.named(AlertNotificationTarget, target.target_ref, at)
            names.append(named.metadata.name)
        elif target.metadata is not None:
            names.append(target.metadata.name)
    return tuple(names)


def _severity(text: str, path: str) -> Severity:
    try:
        return Severity(text.lower())
    except ValueError as error:
        what = f"{text!r} is none that we tell apart"
        raise UnsupportedError(path, what, "write page or ticket") from error


def _short_s(noted: Mapping[str, str], long_s: int) -> int:
    text = noted.get(SHORT_WINDOW)
    if text is None:
        return max(long_s // SHORT_SHARE, 1)
    if not text.isdecimal() or not 0 < int(text) <= long_s:
        what = f"{text!r} is no length up to lookbackWindow"
        raise UnsupportedError(f"metadata.annotations.{SHORT_WINDOW}", what, "give whole seconds")
    return int(text)

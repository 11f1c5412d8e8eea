"""Settings of objectives: what they come to, and what is refused with its path."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.objectives import BurnRule, Correction, Period, Severity
from tailbudget.schemas.settings import Settings, load

EXAMPLE = Path(__file__).parents[3] / "tailbudget.example.yaml"
ERRORS = {"name": "errors", "target_pct": 99.9}


def refused(tmp_path: Path, objective: dict[str, Any], **service: Any) -> str:
    """Return what is said about settings with an objective that is wrong."""
    path = tmp_path / "tailbudget.yaml"
    chat = {"objectives": [{**ERRORS, **objective}], **service}
    path.write_text(yaml.safe_dump({"services": {"chat": chat}}), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    return str(caught.value)


def test_the_example_has_both_kinds() -> None:
    """Requests over rolling days, and minutes of one route over a calendar month with its rule."""
    requests, minutes = load(EXAMPLE, {}).service("chat").slos("chat")
    assert (requests.target, requests.threshold_ms) == (Fraction(99, 100), 4000)
    assert (requests.period, requests.slice_s, requests.rules) == (Period(30, "d"), None, ())
    assert minutes.cohort == (("route", "search"),)
    assert minutes.period == Period(1, "M", "2026-01-01T00:00:00", "Europe/Berlin")
    assert (minutes.slice_s, minutes.slice_target) == (60, Fraction(95, 100))
    assert minutes.rules == (BurnRule(Severity.PAGE, 14.4, 3600, 300),)


def test_maintenance_is_a_span_of_event_time() -> None:
    """An hour, from and to the nanosecond."""
    t0_ns = 1_772_445_600 * 10**9  # 2026-03-02T10:00:00Z
    (span,) = load(EXAMPLE, {}).service("chat").corrections()
    assert span == Correction(t0_ns, t0_ns + 3600 * 10**9, "upgrade of the database")


def test_a_target_is_an_objective_of_thirty_days() -> None:
    """All but the error budget within p99_ms; an empty list is no objective."""
    settings = Settings.model_validate(
        {
            "services": {
                "chat": {"slo": "p95=100,p99=200,budget=0.1"},
                "quiet": {"slo": "p99=200", "objectives": []},
            }
        }
    )
    (one,) = settings.service("chat").slos("chat")
    assert (one.name, one.threshold_ms, one.target) == ("latency", 200, Fraction(999, 1000))
    assert settings.service("quiet").slos("quiet") == ()
    assert settings.service("other").slos("other") == ()


def test_thresholds_of_objectives_are_counted_too() -> None:
    """Requests beyond each threshold of targets and objectives are to be counted."""
    settings = load(EXAMPLE, {})
    assert settings.service("chat").thresholds_ms() == (800, 2500, 4000)


@pytest.mark.parametrize(
    ("objective", "said"),
    [
        ({"target_pct": 100}, "objectives[0].target_pct"),
        ({"period": "30"}, "is no duration"),
        ({"period": "30s"}, "is no period"),
        ({"time_zone": "Mars/Olympus"}, "is no IANA time zone"),
        ({"calendar_start": "2026-01-01T00:00:00Z"}, "has an offset"),
        ({"calendar_start": "new year"}, "is no time"),
        ({"slice_s": 60}, "slice_s and slice_target_pct go together"),
        ({"burn": [{"window": "1h"}]}, "needs factor or budget_pct"),
        ({"burn": [{"window": "1h", "factor": 2, "short": "2h"}]}, "short is longer than window"),
        ({"target_pct": 90, "burn": [{"window": "1h", "factor": 14.4}]}, "never reached"),
        ({"cohort": {"planet": "mars"}}, "asks for 'planet', which is no dimension"),
        ({"threshold": 5}, "did you mean 'threshold_ms'?"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, objective: dict[str, Any], said: str) -> None:
    """Each mistake has its path or its words."""
    message = refused(tmp_path, objective)
    assert said in message
    assert "services" in message


def test_names_are_unique(tmp_path: Path) -> None:
    """Two objectives of one name would share an alert."""
    assert "names two objectives 'errors'" in refused(tmp_path, {}, objectives=[ERRORS, ERRORS])

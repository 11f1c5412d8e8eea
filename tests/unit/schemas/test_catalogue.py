"""The catalogue of fixes is data that users override, extend and get told about."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
from pages import DOCS, blocks, rows

from tailbudget.schemas.catalogue import EffectKind, Fix, Sign, load_catalogue
from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.proposals import CauseName

CAUSES = [name for name in CauseName if name is not CauseName.UNKNOWN]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "fixes.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_each_cause_has_a_mitigation_and_a_long_term_fix() -> None:
    """Of at least 25 fixes every cause has several, of either horizon."""
    fixes = load_catalogue().fixes
    assert len(fixes) >= 25
    horizons = Counter((cause, fix.horizon) for fix in fixes.values() for cause in fix.causes)
    assert [(c, h) for c in CAUSES for h in ("short", "long") if not horizons[c, h]] == []


def test_every_estimated_fix_states_what_it_assumes() -> None:
    """No replay goes without the source of its assumption."""
    silent = [
        key
        for key, fix in load_catalogue().fixes.items()
        if fix.effect.kind != "none" and not fix.effect.assumption
    ]
    assert silent == []


def test_no_built_in_fix_claims_how_much_faster_a_model_becomes() -> None:
    """The factor of a smaller or quantised model comes from a benchmark, never from us."""
    scaled = [f.effect for f in load_catalogue().fixes.values() if f.effect.kind == "scale_stage"]
    assert scaled
    assert {effect.factor for effect in scaled} == {None}


def test_a_file_changes_adds_and_removes_fixes(tmp_path: Path) -> None:
    """A field of ours changes alone, a new key adds a fix, and null removes one."""
    text = """
fixes:
  batched_fetch: {hours: 3, effect: {per_call: 100}}
  quantise: null
  smaller_model: {effect: {kind: none}}
  shard_by_tenant:
    fix: Shard the store by tenant
    causes: [contention]
    hours: 80
    quality_risk: none
    reversible: false
    horizon: long
    verify: p99 by tenant
"""
    ours, own = load_catalogue().fixes, load_catalogue(written(tmp_path, text)).fixes
    assert own["batched_fetch"].hours == 3
    assert own["batched_fetch"].effect.per_call == 100
    assert own["batched_fetch"].effect.assumption == ours["batched_fetch"].effect.assumption
    assert own["batched_fetch"].verify == ours["batched_fetch"].verify
    assert own["smaller_model"].effect.assumption == ""
    assert own.keys() - ours.keys() == {"shard_by_tenant"}
    assert ours.keys() - own.keys() == {"quantise"}


def test_an_empty_file_leaves_the_built_in_fixes(tmp_path: Path) -> None:
    """A file that says nothing is fine."""
    assert load_catalogue(written(tmp_path, "# later\n")) == load_catalogue()


def test_all_errors_come_at_once_with_line_and_remedy(tmp_path: Path) -> None:
    """Every wrong value is told with its path, its line and what to write instead."""
    text = """fixes:
  batched_fetch:
    hours: -2
    effect:
      per_call: 1
  warm_pool:
    causes: [bad_luck]
    quality_risk: tiny
  mine:
    fix: Do it
    cause: contention
Extra: 1
"""
    with pytest.raises(ConfigError) as caught:
        load_catalogue(written(tmp_path, text))
    message = str(caught.value)
    for part in (
        "Extra (line 12): no such key",
        "fixes.batched_fetch.hours (line 3): -2 is not above 0",
        "fixes.batched_fetch.effect.per_call (line 5): 1 is not above 1",
        "fixes.warm_pool.causes[0] (line 7): 'bad_luck'",
        "fixes.warm_pool.quality_risk (line 8): 'tiny' is not one of the choices",
        "remedy: use 'none', 'low', 'medium' or 'high'",
        "fixes.mine.verify (line 9): is missing",
        "fixes.mine.cause (line 11): no such key",
        "remedy: did you mean 'causes'?",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("effect", "what", "remedy"),
    [
        ("{kind: hedge, at: 3}", "kind hedge takes no at", "give percentile"),
        ("{kind: route_cohort, factor: 0.5}", "takes no factor", "leave it out"),
        ("{kind: hit_ratio}", "kind hit_ratio lacks to", "add to"),
        ("{kind: scale_stage, factor: 1.5}", "makes the stage slower", "use 0 to 1"),
        ("{kind: lower_load, factor: 0.5}", "adds no capacity", "use more than 1"),
    ],
)
def test_an_effect_takes_only_its_own_parameter(
    tmp_path: Path, effect: str, what: str, remedy: str
) -> None:
    """A parameter that a kind does not read would be ignored in silence, so it is refused."""
    text = f"fixes:\n  bulkhead:\n    effect: {effect}\n"
    with pytest.raises(ConfigError) as caught:
        load_catalogue(written(tmp_path, text))
    assert "fixes.bulkhead.effect (line 3)" in str(caught.value)
    assert what in str(caught.value)
    assert remedy in str(caught.value)


def test_an_unknown_cause_cannot_be_fixed(tmp_path: Path) -> None:
    """No fix is recommended without a named cause."""
    text = "fixes:\n  bulkhead: {causes: [unknown]}\n"
    with pytest.raises(ConfigError, match="treats an unknown cause"):
        load_catalogue(written(tmp_path, text))


def test_the_page_names_every_field_sign_and_kind() -> None:
    """docs/fixes.md says what the code reads, in the same words."""
    page = DOCS / "fixes.md"
    fields = {f"`{name}`": field.description for name, field in Fix.model_fields.items()}
    assert dict(rows(page, "| Field | Meaning |")) == fields
    assert [row[0] for row in rows(page, "| Sign | Holds when |")] == [
        f"`{sign}`" for sign in get_args(Sign)
    ]
    kinds = {row[0] for row in rows(page, "| Kind | Parameter | The replay |")}
    assert kinds == {f"`{kind}`" for kind in get_args(EffectKind)}


def test_the_example_of_the_page_loads(tmp_path: Path) -> None:
    """What the page shows is a file that loads, and it does what it says."""
    (example,) = blocks(DOCS / "fixes.md", "yml")
    own = load_catalogue(written(tmp_path, example)).fixes
    assert own["smaller_model"].effect.factor == 0.6
    assert own["smaller_model"].effect.kind == "scale_stage"
    assert "hedged_requests" not in own
    assert own["shard_by_tenant"].effect.kind == "level_stage"

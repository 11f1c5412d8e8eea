"""What names say about stages, covariates and flags."""

from __future__ import annotations

import pytest

from tailbudget.models.causes.names import Role, is_external, is_flag, is_miss, is_waiting, role


@pytest.mark.parametrize(
    "stage",
    ["feature_lookup", "retrieve", "http_fetch", "vectorDB", "db", "tool_call", "upstream", "rpc"],
)
def test_calls_to_other_processes(stage: str) -> None:
    """Words of stores, networks and other services, in any spelling."""
    assert is_external(stage)


@pytest.mark.parametrize(
    "stage",
    ["forward", "beam_search", "model_load", "neural_net", "service_time", "db_wait", "dbx"],
)
def test_work_of_its_own(stage: str) -> None:
    """What only resembles such a word is none, and waiting for a store is waiting."""
    assert not is_external(stage)
    assert is_external(stage, {stage})


@pytest.mark.parametrize("stage", ["queue", "schedule_wait", "admission", "lock_wait", "pool"])
def test_waiting(stage: str) -> None:
    """Time in which nothing is done."""
    assert is_waiting(stage)
    assert not is_external(stage)


@pytest.mark.parametrize(
    ("covariate", "what"),
    [
        ("sequence_length", Role.SHAPE),
        ("batch_size", Role.SHAPE),
        ("candidates", Role.FANOUT),
        ("num_shards", Role.FANOUT),
        ("documents", Role.FANOUT),
        ("in_flight", Role.LOAD),
        ("queue_depth", Role.LOAD),
        ("prefix_hit", Role.FLAG),
        ("flight_number", Role.SHAPE),
    ],
)
def test_roles_of_covariates(covariate: str, what: Role) -> None:
    """What no word tells is the shape of the input."""
    assert role(covariate) is what


@pytest.mark.parametrize(
    ("dimension", "value", "missed"),
    [
        ("cache_hit", "false", True),
        ("cache_hit", "True", False),
        ("cache_miss", "true", True),
        ("cache_miss", "0", False),
        ("prefix_hit", "miss", True),
        ("cache_miss", "hit", False),
        ("cache_hit", "partial", None),
    ],
)
def test_hits_and_misses(dimension: str, value: str, missed: bool | None) -> None:  # noqa: FBT001
    """A flag may say either, and a value may say nothing."""
    assert is_flag(dimension)
    assert is_miss(dimension, value) is missed

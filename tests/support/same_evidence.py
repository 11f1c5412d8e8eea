"""Equality of evidence: all but co-moments to the last bit, those to 1e-9."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from same_values import assert_same

from tailbudget.models.evidence import Evidence
from tailbudget.schemas.summary import Moments, Summary

SUMMARIES = ("total", "cohorts", "timeline", "warm", "instances", "warm_cohorts")


def assert_same_evidence(left: Evidence, right: Evidence) -> None:
    """Fail, naming the place, unless two evidences say the same."""
    for name in SUMMARIES:
        one, other = getattr(left, name), getattr(right, name)
        assert (one is None) == (other is None), name
        if one is not None:
            _assert_same_summary(one, other, name)
    for field in fields(Evidence):
        if field.name not in SUMMARIES:
            assert getattr(left, field.name) == getattr(right, field.name), field.name


def _assert_same_summary(left: Summary, right: Summary, path: str) -> None:
    for field in fields(Summary):
        one, other = getattr(left, field.name), getattr(right, field.name)
        if field.name == "moments":
            _assert_near(one, other, f"{path}.moments")
        else:
            assert_same(one, other, f"{path}.{field.name}")


def _assert_near(left: Moments, right: Moments, path: str) -> None:
    for field in fields(Moments):
        one, other = getattr(left, field.name), getattr(right, field.name)
        if one.dtype.kind != "f":
            assert_same(one, other, f"{path}.{field.name}")
            continue
        # What cancels is as exact as what it is the difference of.
        scale = np.abs(one).max(axis=0, initial=0.0)
        assert one.shape == other.shape, f"{path}.{field.name}"
        assert (np.abs(one - other) <= 1e-9 * np.maximum(np.abs(one), scale)).all(), (
            f"{path}.{field.name}"
        )

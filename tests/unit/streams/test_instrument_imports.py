"""A service that makes records loads next to nothing for it."""

from __future__ import annotations

import subprocess
import sys

ALLOWED = {"tailbudget", "orjson", "confluent_kafka"}
SCRIPT = """
import sys
before = set(sys.modules)
import {module}
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}}))
"""


def loaded_by(module: str) -> set[str]:
    """Return the packages outside of the standard library that an import loads."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(module=module)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split()) - sys.stdlib_module_names - {"cimpl"}


def test_it_imports_only_what_it_may() -> None:
    """No polars, numpy, pydantic, faust or the like: only orjson and confluent-kafka."""
    assert loaded_by("tailbudget.streams.instrument") == ALLOWED


def test_the_packages_around_it_import_nothing() -> None:
    """`tailbudget.streams` and `tailbudget.schemas` themselves load nothing."""
    assert loaded_by("tailbudget.streams") == {"tailbudget"}
    assert loaded_by("tailbudget.schemas") == {"tailbudget"}


def test_the_search_finds_what_is_heavy() -> None:
    """The test above can fail: the decoders load numpy and polars."""
    assert {"numpy", "polars"} <= loaded_by("tailbudget.streams.sources")

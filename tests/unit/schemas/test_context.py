"""What a team says about its service."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailbudget.schemas.context import Context, load_context
from tailbudget.schemas.errors import ConfigError


@pytest.mark.parametrize(
    "text",
    [
        "hardware: 2 x A10G\nconstraints: [no loss of quality]\n",
        '{"hardware": "2 x A10G", "constraints": ["no loss of quality"]}',
    ],
)
def test_yaml_and_json_say_the_same(tmp_path: Path, text: str) -> None:
    """A context is YAML or JSON; what it leaves out is unknown."""
    path = tmp_path / "context"
    path.write_text(text, encoding="utf-8")
    assert load_context(path) == Context(hardware="2 x A10G", constraints=("no loss of quality",))


def test_all_errors_come_at_once(tmp_path: Path) -> None:
    """Each wrong key is told with its line and what to write."""
    path = tmp_path / "context.yaml"
    path.write_text("runtime: vLLM\nhardware: 3\nconstraints: fast\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_context(path)
    message = str(caught.value)
    assert "runtime (line 1): no such key" in message
    assert "did you mean 'serving_runtime'?" in message
    assert "hardware (line 2): 3 is no text" in message
    assert "such as 2 x A10G" in message
    assert "constraints (line 3): 'fast' is no list" in message

"""docs/configuration.md and docs/commands.md say what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
from pages import DOCS, PAGES, ROOT, blocks
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from tailbudget.schemas.connections import ChatChannel
from tailbudget.schemas.kafka import RequestTopic
from tailbudget.schemas.objective_settings import (
    BurnSettings,
    MaintenanceSettings,
    ObjectiveSettings,
)
from tailbudget.schemas.services import ServiceSettings
from tailbudget.schemas.settings import Settings, load
from tailbudget.schemas.settings_base import Group
from tailbudget.schemas.targets import SloFields
from tailbudget.schemas.token_settings import GoodputSettings, TokenTimingSettings
from tailbudget.streams.cli.app import app
from tailbudget.streams.mapping_file import load_mapping, mapped

COLLECTOR = ROOT / "tests" / "otel" / "collector.yaml"

TABLES: dict[str, type[Group]] = {
    **{
        name: field.annotation
        for name, field in Settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, Group)
    },
    "kafka.requests[]": RequestTopic,
    "services.NAME": ServiceSettings,
    "slo": SloFields,
    "goodput": GoodputSettings,
    "token_timing": TokenTimingSettings,
    "objectives[]": ObjectiveSettings,
    "burn[]": BurnSettings,
    "maintenance[]": MaintenanceSettings,
    "chat[]": ChatChannel,
}


def row(path: str, field: FieldInfo) -> str:
    """Return the row of the page for one key."""
    return f"| `{path}` | {default_text(field)} | {field.description} |"


def default_text(field: FieldInfo) -> str:
    """Return a default as the page shows it."""
    value: Any = field.default
    if field.is_required():
        return "required"
    if isinstance(value, SecretStr):
        return "empty"
    if value is None:
        return "null"
    if isinstance(value, tuple | dict):
        return "see the example"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def wanted_rows() -> list[str]:
    """Return all rows that the page must have."""
    tables = {name: model for name, model in TABLES.items() if name != "services.NAME"}
    rows = [
        row(f"{name}.{key}", field)
        for name, model in tables.items()
        for key, field in model.model_fields.items()
    ]
    own = ("environment", "catalogue", "openslo", "data_dir", "log_level")
    return rows + [row(key, Settings.model_fields[key]) for key in own]


def test_the_page_describes_every_setting() -> None:
    """Each key stands in a table with its default and what it is for."""
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    lines = page.splitlines()
    assert [text for text in wanted_rows() if text not in lines] == []
    rows = [line for line in lines if line.startswith("| `")]
    assert [line for line in rows if line not in wanted_rows()] == []


def test_the_settings_on_the_pages_load(tmp_path: Path) -> None:
    """Every YAML block is a file of settings or a mapping that loads, or what the suite runs."""
    environ = {"TEAM_SLACK_URL": "slack://A/B/C", "KAFKA_PASSWORD": "x", "CLICKHOUSE_PASSWORD": "y"}
    files = [block for page in PAGES for block in blocks(page, "yaml")]
    assert files
    for block in files:
        path = tmp_path / "tailbudget.yaml"
        path.write_text(block, encoding="utf-8")
        if block.startswith("receivers:"):
            assert block == COLLECTOR.read_text(encoding="utf-8")
            continue
        if block.startswith("columns:"):
            assert mapped(load_mapping(path)).fields
            continue
        assert load(path, environ) != Settings()


def test_the_page_describes_every_command() -> None:
    """Each command has a section that names its arguments and options."""
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    sections = dict(
        re.findall(r"^## `tailbudget (\w+)`\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    )
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    assert set(sections) == set(group.commands)
    for name, command in group.commands.items():
        options = [p.opts[0] for p in command.params if p.name not in ("help", "config")]
        names = [text for text in options if text.startswith("--")]
        assert [text for text in names if f"`{text}" not in sections[name]] == []
        example = re.search(r"Example: `(.+?)`", " ".join((command.help or "").split()))
        assert example
        assert example[1] in sections[name]

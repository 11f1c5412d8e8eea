"""docker-compose.yml and the Dockerfile: valid, complete, and true to the settings and commands."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from jsonschema.validators import validator_for

from tailbudget.schemas.settings import load
from tailbudget.streams.cli.app import app

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = ("migrate", "worker", "simulate")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def filled(value: str, environ: Mapping[str, str]) -> str:
    """Return a value as compose fills it in: ${NAME:-default} and ${NAME:?message}."""
    return re.sub(
        r"\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}",
        lambda found: environ.get(found[1]) or found[2] or "",
        value,
    )


def test_the_file_is_valid() -> None:
    """The file keeps to the schema of the Compose Specification."""
    files = metadata.files("check-jsonschema") or []
    place = next(file for file in files if file.name == "compose-spec.json").locate()
    schema = json.loads(Path(str(place)).read_text(encoding="utf-8"))
    validator = validator_for(schema)(schema)
    assert [error.message for error in validator.iter_errors(COMPOSE)] == []
    broken = {**COMPOSE, "services": {"worker": {"replicas": 2}}}
    assert list(validator.iter_errors(broken))


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_bounded_and_watched(name: str) -> None:
    """Each has an image, a restart policy, limits of processor and memory, and a health check."""
    service = SERVICES[name]
    assert re.fullmatch(r"[\w./-]+:[\w.-]+", service["image"])
    assert not service["image"].endswith(":latest")
    limits = service["deploy"]["resources"]["limits"]
    assert float(limits["cpus"]) > 0
    assert re.fullmatch(r"\d+[MG]", limits["memory"])
    if name == "migrate":
        assert service["restart"] == "on-failure"
        return
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"][0] == "CMD"
    assert {"interval", "timeout", "retries", "start_period"} <= service["healthcheck"].keys()


def test_there_are_two_workers() -> None:
    """The work is shared by two workers of one group, which wait for what they need."""
    worker = SERVICES["worker"]
    assert worker["deploy"]["replicas"] == 2
    assert "ports" not in worker
    assert worker["depends_on"] == {
        "kafka": {"condition": "service_healthy"},
        "migrate": {"condition": "service_completed_successfully"},
    }


def test_data_lasts_and_is_declared() -> None:
    """Kafka, ClickHouse and Grafana write to named volumes, and every volume is declared."""
    used = {mount.split(":")[0] for s in SERVICES.values() for mount in s.get("volumes", ())}
    assert used == set(COMPOSE["volumes"]) == {"kafka-data", "clickhouse-data", "grafana-data"}
    log_dirs = SERVICES["kafka"]["environment"]["KAFKA_LOG_DIRS"]
    assert f"kafka-data:{log_dirs}" in SERVICES["kafka"]["volumes"]


def test_every_file_is_declared_and_there() -> None:
    """Each mounted file is declared, each declared one is mounted, and all of them exist."""
    used = {entry["source"] for s in SERVICES.values() for entry in s.get("configs", ())}
    assert used == set(COMPOSE["configs"])
    for entry in COMPOSE["configs"].values():
        assert (ROOT / filled(entry["file"], {})).is_file()


@pytest.mark.parametrize("name", OURS)
def test_our_services_read_settings_that_exist(name: str) -> None:
    """The mounted file and the variables load, and lead to the services beside."""
    environ = {"CLICKHOUSE_PASSWORD": "s3cret"}
    given = {key: filled(str(v), environ) for key, v in SERVICES[name]["environment"].items()}
    source = ROOT / filled(COMPOSE["configs"]["tailbudget"]["file"], environ)
    mounted = {entry["source"]: entry["target"] for entry in SERVICES[name]["configs"]}
    assert given["TAILBUDGET_CONFIG"] == mounted["tailbudget"]
    settings = load(source, given)
    host, port = settings.kafka.bootstrap.split(":")
    assert host in SERVICES
    assert f"PLAINTEXT://:{port}" in SERVICES["kafka"]["environment"]["KAFKA_LISTENERS"]
    clickhouse = SERVICES[settings.clickhouse.host]["environment"]
    assert settings.clickhouse.username == clickhouse["CLICKHOUSE_USER"]
    password = filled(clickhouse["CLICKHOUSE_PASSWORD"], environ)
    assert settings.clickhouse.password.get_secret_value() == password == "s3cret"
    assert f"127.0.0.1:{settings.clickhouse.port}:8123" in SERVICES["clickhouse"]["ports"]


@pytest.mark.parametrize("name", OURS)
def test_our_services_run_commands_that_exist(name: str) -> None:
    """The command line parses it, to a command of the same name."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    context = group.make_context("tailbudget", list(SERVICES[name]["command"]))
    command_name, command, rest = group.resolve_command(context, SERVICES[name]["command"])
    assert command is not None
    assert command_name == name
    command.make_context(name, rest)


def test_the_health_check_of_a_worker_looks_at_its_port() -> None:
    """It asks the port that the settings open and the image exposes, and is proper Python."""
    port = load(ROOT / "tailbudget.example.yaml", {}).web.port
    check = SERVICES["worker"]["healthcheck"]["test"][-1]
    assert f'urlopen("http://127.0.0.1:{port}/healthz"' in check
    compile(check, "healthcheck", "exec")
    assert f"EXPOSE {port}\n" in DOCKERFILE


def test_only_this_machine_reaches_the_published_ports() -> None:
    """Nothing is published beyond the loopback address."""
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_the_image_holds_what_is_installed() -> None:
    """All folders of the package are copied, and let through to the build."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders = set(project["tool"]["setuptools"]["package-dir"].values())
    needed = folders | {"pyproject.toml", project["project"]["readme"]}
    copied = {
        name
        for line in re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, re.MULTILINE)
        for name in line.split()
    }
    assert copied == needed
    let_through = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {name[1:] for name in let_through if name.startswith("!")} == needed


def test_the_image_runs_without_rights() -> None:
    """The image is Python 3.12 slim, ends as a user who is not root, and runs our command."""
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["python:3.12-slim"] * 2
    users = re.findall(r"^USER (\d+)", DOCKERFILE, re.MULTILINE)
    assert users
    assert users[-1] != "0"
    assert 'ENTRYPOINT ["tailbudget"]' in DOCKERFILE

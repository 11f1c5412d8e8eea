"""What a team says about its service, for the optimisation brief."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, ValidationError

from tailbudget.schemas.problems import Origin, config_error, describe
from tailbudget.schemas.settings_base import Group
from tailbudget.schemas.yaml_file import Kind, read_yaml

Text = Annotated[str, Field(min_length=1, max_length=200)]


class Context(Group):
    """All of it is optional; the brief lists what is missing."""

    framework: Text | None = Field(
        default=None, description="such as PyTorch 2.4, TensorFlow, ONNX Runtime"
    )
    serving_runtime: Text | None = Field(
        default=None, description="such as vLLM, Triton, TorchServe, FastAPI"
    )
    deployment_target: Text | None = Field(
        default=None, description="such as Kubernetes, one VM, edge devices"
    )
    hardware: Text | None = Field(default=None, description="such as 2 x A10G, 16 vCPU")
    traffic_pattern: Text | None = Field(
        default=None, description="such as 40 requests a second, peaks at noon"
    )
    constraints: tuple[Text, ...] = Field(
        default=(), description="a list, such as no loss of quality, data stays in the EU"
    )


CONTEXT: Final = Kind(
    "context file",
    "give another --context",
    "write KEY: VALUE lines, such as hardware: 2 x A10G",
)


def load_context(path: Path) -> Context:
    """Return the context that a YAML or JSON file gives (JSON is YAML).

    Raises:
        ConfigError: the file is missing, no YAML, or holds anything wrong; all that is wrong is
            in the one message, each with its path, what was given, and the remedy.
    """
    document = read_yaml(path, CONTEXT)
    try:
        return Context.model_validate(document.values)
    except ValidationError as error:
        origins = {key: Origin(f"line {line}") for key, line in document.lines.items()}
        raise config_error(str(path), describe(error, Context, document.values, origins)) from error

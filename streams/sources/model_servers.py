"""Access logs of TorchServe, Ray Serve and KServe: a line a request.

TorchServe's `ACCESS_LOG` ends in milliseconds. Ray Serve prints the duration ("12.3ms"), as text or
under `message` or `latency_ms` of JSON. KServe's tracing tells the steps of a request (`predict_ms`
and others), whose sum is taken for the total. All are stamped with the end, in the server's zone.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from tailbudget.streams.sources.access_log import (
    AccessLog,
    before,
    number,
    request_of,
    route_of,
    told,
)
from tailbudget.streams.sources.translated import NotOfFormatError
from tailbudget.streams.sources.written_durations import written_ms

_STAMP: Final = r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)[,.](\d{3})"
_TORCHSERVE: Final = re.compile(
    _STAMP + r" .{0,200}?ACCESS_LOG - \S+ \"([^\"]{0,8000})\" (\d{3}) (\d+)\s*$"
)
_RAY: Final = re.compile(
    _STAMP + r" (\S+) (\S+) (?:(\S+) )?(?:\S+ )?(?:\S+:\d+ )?-{1,2} ([A-Z]{3,9}) (\S+) (\S+) (\S+)$"
)
_RAY_MESSAGE: Final = re.compile(r"([A-Z]{3,9}) (\S+) (\S+) (\S+)$")
_KSERVE: Final = re.compile(r"requestId: ([^,\s]{1,100}), ((?:\w+_ms: [\d.]+(?:, )?)+)")
_STEP: Final = re.compile(r"(\w+)_ms: ([\d.]+)")
_WHEN: Final = re.compile(_STAMP)


class TorchserveDecoder(AccessLog):
    """Decodes access logs of TorchServe; see the package docstring for what it promises."""

    name = "torchserve"

    def parse(self, line: str) -> dict[str, Any]:
        """Return the native record of a line."""
        found = _TORCHSERVE.search(line)
        if found is None:
            raise NotOfFormatError("no line of TorchServe's ACCESS_LOG")
        second, fraction, request, code, total = found.groups()
        return {
            "timestamp": before(f"{second}.{fraction}", number(total)),
            "total_ms": number(total),
            "status": code,
            **request_of(request),
        }


class RayServeDecoder(AccessLog):
    """Decodes access logs of Ray Serve; see the package docstring for what it promises."""

    name = "ray_serve"

    def parse(self, line: str) -> dict[str, Any]:
        """Return the native record of a line."""
        if line.startswith("{"):
            return self._of_json(line)
        found = _RAY.search(line)
        total_ms = written_ms(found[9]) if found else None
        if found is None or total_ms is None:
            raise NotOfFormatError("no line of Ray Serve's access log")
        second, fraction, deployment, replica, id_, method, path, code, _ = found.groups()
        return {
            "request_id": told(id_),
            "timestamp": before(f"{second}.{fraction}", total_ms),
            "total_ms": total_ms,
            "status": code,
            "deployment": deployment,
            "instance_id": replica,
            "method": method,
            "route": route_of(path),
        }

    @staticmethod
    def _of_json(line: str) -> dict[str, Any]:
        try:
            values = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise NotOfFormatError(f"no JSON: {error}") from None
        if not isinstance(values, dict):
            raise NotOfFormatError("JSON, but no object")
        found = _RAY_MESSAGE.search(str(values.get("message", ""))[:8000])
        total_ms = number(values.get("latency_ms")) or (written_ms(found[4]) if found else None)
        if total_ms is None:
            raise NotOfFormatError("no line of Ray Serve's access log")
        stamp = _WHEN.search(str(values.get("asctime") or values.get("timestamp") or ""))
        return {
            "request_id": told(values.get("request_id")),
            "timestamp": before(f"{stamp[1]}.{stamp[2]}" if stamp else None, total_ms),
            "total_ms": total_ms,
            "status": told(values.get("status")) or (found[3] if found else None),
            "deployment": told(values.get("deployment")),
            "instance_id": told(values.get("replica")),
            "method": told(values.get("method")) or (found[1] if found else None),
            "route": route_of(told(values.get("route")) or (found[2] if found else None)),
        }


class KserveDecoder(AccessLog):
    """Decodes traces in logs of KServe; see the package docstring for what it promises."""

    name = "kserve"
    says = ("totals of KServe are the sums of the steps that it tells",)

    def parse(self, line: str) -> dict[str, Any]:
        """Return the native record of a line."""
        found = _KSERVE.search(line)
        if found is None:
            raise NotOfFormatError("no line of KServe with the steps of a request")
        steps = {name: number(value) for name, value in _STEP.findall(found[2])}
        known = [ms for ms in steps.values() if ms is not None]
        stamp = _WHEN.search(line)
        return {
            "request_id": told(found[1].replace("N.A.", "-")),
            "timestamp": before(f"{stamp[1]}.{stamp[2]}" if stamp else None, sum(known)),
            "total_ms": round(sum(known), 6),
            "status": "ok",
            **{f"{name}_ms": ms for name, ms in steps.items()},
        }

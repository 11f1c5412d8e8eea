"""Asking a running worker over HTTP, which alone may open its embedded engine."""

from __future__ import annotations

from collections.abc import Mapping
from http.client import SERVICE_UNAVAILABLE
from typing import Any, Final

import orjson
import requests

from tailbudget.schemas.errors import ClickHouseError, ConfigError, TailbudgetError

CONNECT_S: Final = 5.0
"""Patience for a connection."""

ANSWER_S: Final = 300.0
"""Patience for an answer."""


def request(
    worker: Mapping[str, Any],
    method: str,
    path: str,
    *,
    params: Mapping[str, Any] | None = None,
    json: Any = None,
    patience_s: float = ANSWER_S,
) -> requests.Response:
    """Return the answer of a worker, whatever its status.

    Args:
        worker: what it announced in `worker.json`.
        method: such as "GET".
        path: such as "/sql".
        params: what stands behind the question mark.
        json: the body.
        patience_s: how long to wait for the answer.

    Raises:
        ClickHouseError: it serves no HTTP, or does not answer.
    """
    if not {"host", "port"} <= worker.keys():
        raise ClickHouseError(
            f"the embedded ClickHouse belongs to process {worker.get('pid', '?')}, which serves "
            "no HTTP",
            remedy="set web.enabled for the worker, or stop it and ask again",
        )
    url = f"http://{worker['host']}:{worker['port']}{path}"
    timeout = (CONNECT_S, patience_s)
    try:
        return requests.request(method, url, params=params, json=json, timeout=timeout)
    except requests.RequestException as error:
        raise ClickHouseError(
            f"the worker that owns the embedded ClickHouse does not answer at {url}",
            remedy="wait until it has started; if it hangs, stop it and ask again",
        ) from error


def json_of(response: requests.Response) -> Mapping[str, Any]:
    """Return the JSON object of an answer; empty where it is none."""
    try:
        body = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return {}
    return body if isinstance(body, dict) else {}


def refusal_of(response: requests.Response) -> TailbudgetError:
    """Return what a worker said in place of a result, to be raised."""
    body = json_of(response)
    said, remedy = body.get("error"), str(body.get("remedy") or "")
    if said and response.status_code == SERVICE_UNAVAILABLE:
        return ClickHouseError(str(said), remedy=remedy)
    if said:
        return ConfigError(str(said), remedy=remedy or "correct the query")
    return ClickHouseError(
        f"{response.url} answers HTTP {response.status_code} and no result",
        remedy="is that port the worker's? see worker.json in data_dir",
    )

"""Access logs of proxies."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import Read

from tailbudget.schemas.errors import ConfigError, Refused
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.streams.audit_log import Wanted, open_log, parse_format
from tailbudget.streams.sources import ACCESS_LOGS, Rules, ServiceRules, SourceMessage, decoder

DATA = Path(__file__).parents[2] / "data"
NOW_NS = 1_800_000_000 * 10**9
DIMS = ("route", "method", "upstream", "instance_id", "upstream_attempts")
RULES = Rules(default=ServiceRules(covariates=("payload_bytes",), cohort_dims=DIMS))

NGINX = '10.0.0.1 - - [02/Mar/2026:10:00:01 +0100] "GET /a/17?q=secret HTTP/1.1" 200 59 "-" "curl"'
ENVOY = (
    '[2026-03-02T10:00:00.250Z] "POST /v1/rank HTTP/2" 200 - 154 20 41 33 "10.0.0.9" "go" '
    '"5f0d8cbb-4f6c-4d2b-9d0f-0c8f7c6b5a4d" "rank.local" "10.1.0.7:8080"'
)
ISTIO = (
    '[2026-03-02T10:00:00.250Z] "POST /v1/rank HTTP/2" 503 UO overflow - "-" 154 81 4 - "-" "go" '
    '"5f0d8cbb-4f6c-4d2b-9d0f-0c8f7c6b5a4d" "rank.local" "-" outbound|8080||rank.default '
    "- 10.1.0.1:8080 10.0.0.9:1234 - default"
)
ALB = (
    "https 2026-03-02T10:00:00.500000Z app/web/1f 10.0.0.1:2817 10.1.0.7:80 0.001 0.450 0.002 200"
    ' 200 34 366 "POST https://chat.example.com:443/v1/chat?x=1 HTTP/2.0" "go \\"x\\"" - TLSv1.2'
    ' arn:aws:elasticloadbalancing:us-east-2:1:targetgroup/chat/7a "Root=1-58337262-36d2"'
    ' "chat.example.com" "-" 0 2026-03-02T10:00:00.047000Z "forward" "-" "-" "10.1.0.7:80" "200"'
)
HAPROXY = (
    "Mar  2 10:00:00 lb haproxy[14389]: 10.0.0.1:33317 [02/Mar/2026:10:00:00.655] front"
    ' chat/s1 10/5/30/69/120 200 2750 - - ---- 1/1/1/1/2 0/0 {a} {} "GET /v1/chat HTTP/1.1"'
)
TRAEFIK = (
    '10.0.0.1 - - [02/Mar/2026:10:00:00 +0000] "GET /v1/chat HTTP/1.1" 200 12 "-" "curl" 7'
    ' "chat@docker" "http://10.1.0.7:80" 123ms'
)


def read(name: str, line: str | dict[str, Any], rules: Rules = RULES) -> Read:
    text = json.dumps(line) if isinstance(line, dict) else line
    return Read([decoder(name, rules).decode([SourceMessage(text.encode(), 0, NOW_NS)])])


def stages(columns: Columns, row: int = 0) -> dict[str, float]:
    pairs = zip(columns.stages, columns.stage_ms[:, row].tolist(), strict=True)
    return {name: ms for name, ms in pairs if not math.isnan(ms)}


def at_ns(*parts: int, ms: float = 0) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp()) * 10**9 + round(ms * 1e6)  # type: ignore[misc,arg-type]


def test_every_line_of_the_ingress() -> None:
    """Totals are seconds of the line; tries are stages of one request, "-" is none of them."""
    lines = (DATA / "nginx_ingress_access.log").read_text().splitlines()
    reading = open_log(DATA / "nginx_ingress_access.log", now_ns=NOW_NS)
    assert reading.found.format == "nginx"
    log = Read(reading)
    assert log.rejected == []
    assert log.ledger["accepted"] == len(lines) == 12
    columns = log.only
    for row, line in enumerate(lines):
        words = line.rpartition('" ')[2].split(" ")
        assert columns.total_ms[row] == pytest.approx(float(words[1]) * 1e3)
        assert columns.ids[row].startswith(words[-1])
        status = line.split('" ')[1].split(" ")[0]
        assert (columns.outcome[row] == Outcome.OK) == (status == "200")
        written = datetime.strptime(line.split("[")[1].split("]")[0], "%d/%b/%Y:%H:%M:%S %z")
        began = int(written.timestamp()) * 10**9 - round(float(words[1]) * 1e9)
        assert abs(columns.ts_ns[row] - began) < 1_000
    assert stages(columns, 7) == {"upstream": 4, "upstream_retry": 100}
    assert stages(columns, 11) == {"upstream_retry": 100}
    assert stages(columns, 2) == {}
    assert len(set(columns.id_hash.tolist())) == 12  # though one id stands in three lines


def test_a_line_that_came_twice_is_one_request() -> None:
    """The same line has the same id, so that a redelivery is found."""
    line = (DATA / "nginx_ingress_access.log").read_text().splitlines()[0]
    hashes = {int(read("nginx", line).only.id_hash[0]) for _ in range(2)}
    assert len(hashes) == 1


@pytest.mark.parametrize(
    ("times", "wanted"),
    [
        ("0.004", {"upstream": 4}),
        ("0.100, 0.004", {"upstream": 4, "upstream_retry": 100}),
        ("0.100, 0.020 : 0.004", {"upstream": 4, "upstream_retry": 100, "upstream_redirect": 20}),
        ("-, 0.004", {"upstream": 4}),
        ("-", {}),
        ("", {}),
    ],
)
def test_upstreams_of_nginx(times: str, wanted: dict[str, float]) -> None:
    """Commas part the tries, colons the redirects inside of nginx."""
    found = read("nginx", f'{NGINX} rt=0.200 uct="-" uht="-" urt="{times}"').only
    assert stages(found) == wanted
    assert found.total_ms.tolist() == [200]
    assert dict(found.cohorts[0])["route"] == "/a/*"


def test_any_format_of_nginx() -> None:
    """The format of nginx.conf reads the lines that it wrote; others are rejected, not misread."""
    pattern = (
        '$msec|$request_time|$upstream_connect_time|$upstream_response_time|"$request"|$status'
    )
    line = '1772445600.250|0.125|0.010|0.100|"POST /v1 HTTP/1.1"|504'
    rules = Rules(default=RULES.default, pattern=pattern)
    columns = read("nginx", line, rules).only
    assert columns.total_ms.tolist() == [125]
    assert columns.ts_ns.tolist() == [1_772_445_600_125_000_000]
    assert stages(columns) == {"upstream": 90, "upstream_connect": 10}
    assert columns.outcome.tolist() == [Outcome.TIMEOUT]
    assert [r.reason for r in read("nginx", NGINX, rules).rejected] == ["rejected.not_of_format"]
    assert parse_format(pattern) == ("nginx", pattern)
    with pytest.raises(ConfigError, match="no log format"):
        read("nginx", line, Rules(pattern="no variable"))


def test_nginx_as_json() -> None:
    """Keys that are named like the variables are read, whatever else is there."""
    line = {
        "time_iso8601": "2026-03-02T10:00:01+00:00", "request_time": "0.500", "status": "200",
        "request_uri": "/v1/chat?key=secret", "request_method": "POST", "more": [1],
        "upstream_response_time": "0.300, 0.150",
    }  # fmt: skip
    columns = read("nginx", line).only
    assert columns.ts_ns.tolist() == [at_ns(2026, 3, 2, 10, 0, 0, ms=500)]
    assert stages(columns) == {"upstream": 150, "upstream_retry": 300}
    assert dict(columns.cohorts[0])["route"] == "/v1/chat"


def test_nginx_without_times_is_refused(tmp_path: Path) -> None:
    """The combined format has no latency."""
    path = tmp_path / "access.log"
    path.write_text(f"{NGINX}\n" * 3)
    with pytest.raises(Refused):
        open_log(path, Wanted(format="nginx"), now_ns=NOW_NS)


def test_envoy() -> None:
    """Text of Envoy: the start is stamped, the upstream's time is a stage."""
    columns = read("envoy", ENVOY).only
    assert columns.ts_ns.tolist() == [at_ns(2026, 3, 2, 10, 0, 0, ms=250)]
    assert columns.total_ms.tolist() == [41]
    assert stages(columns) == {"upstream": 33}
    assert columns.covariate.tolist() == [[154]]
    assert columns.ids[0].startswith("5f0d8cbb-4f6c-4d2b-9d0f-0c8f7c6b5a4d-")


def test_istio_and_its_flags() -> None:
    """Istio's text has more fields; an overflow is a rejection."""
    columns = read("envoy", ISTIO).only
    assert columns.total_ms.tolist() == [4]
    assert stages(columns) == {}
    assert columns.outcome.tolist() == [Outcome.REJECTED]
    assert dict(columns.cohorts[0])["upstream"] == "outbound|8080||rank.default"


@pytest.mark.parametrize(
    ("code", "flags", "outcome"),
    [
        (200, "-", Outcome.OK),
        (200, "DC", Outcome.CANCELLED),
        (0, "DC", Outcome.CANCELLED),
        (504, "UT", Outcome.TIMEOUT),
        (503, "UF,URX", Outcome.REJECTED),
        (500, None, Outcome.ERROR),
        (0, "-", Outcome.ERROR),
    ],
)
def test_envoy_as_json(code: int, flags: str | None, outcome: Outcome) -> None:
    """A client that left is a cancellation, though its answer had begun with 200."""
    line = {
        "start_time": "2026-03-02T10:00:00.250Z", "duration": 41, "response_code": code,
        "response_flags": flags, "upstream_service_time": "33", "path": "/v1/rank",
        "upstream_request_attempt_count": 3,
    }  # fmt: skip
    columns = read("envoy", line).only
    assert columns.outcome.tolist() == [outcome]
    assert stages(columns) == {"upstream": 33}
    assert dict(columns.cohorts[0])["upstream_attempts"] == "3"


def test_aws() -> None:
    """Three times make up the total; a request began when it was created."""
    columns = read("aws_alb", ALB).only
    assert columns.total_ms.tolist() == [453]
    assert columns.ts_ns.tolist() == [at_ns(2026, 3, 2, 10, 0, 0, ms=47)]
    assert stages(columns) == {
        "request_processing": 1,
        "target_processing": 450,
        "response_processing": 2,
    }
    cohort = dict(columns.cohorts[0])
    assert (cohort["route"], cohort["upstream"]) == ("/v1/chat", "chat/7a")


def test_aws_without_an_answer() -> None:
    """-1 is missing, and the total is the time from creation to the line; 460 is a cancellation."""
    line = ALB.replace("0.001 0.450 0.002 200 200", "0.001 -1 -1 460 -")
    columns = read("aws_alb", line).only
    assert columns.total_ms.tolist() == [453]
    assert stages(columns) == {"request_processing": 1}
    assert columns.outcome.tolist() == [Outcome.CANCELLED]


def test_haproxy() -> None:
    """Five timers; the date in brackets is of the proxy's zone."""
    columns = read("haproxy", HAPROXY).only
    assert columns.total_ms.tolist() == [120]
    assert columns.ts_ns.tolist() == [at_ns(2026, 3, 2, 10, 0, 0, ms=655)]
    assert stages(columns) == {
        "receive": 10,
        "queue": 5,
        "connect": 30,
        "server": 69,
        "transfer": 6,
    }
    assert dict(columns.cohorts[0])["upstream_attempts"] == "3"
    berlin = Rules(default=RULES.default, timezone="Europe/Berlin")
    assert read("haproxy", HAPROXY, berlin).only.ts_ns.tolist() == [
        at_ns(2026, 3, 2, 9, 0, 0, ms=655)
    ]


@pytest.mark.parametrize(
    ("timers", "code", "state", "outcome", "found"),
    [
        ("10/-1/-1/-1/50", 503, "sQ--", Outcome.TIMEOUT, {"receive": 10}),
        ("-1/-1/-1/-1/50", 400, "CR--", Outcome.CANCELLED, {}),
        ("0/0/1/-1/9000", 504, "sH--", Outcome.TIMEOUT, {"receive": 0, "queue": 0, "connect": 1}),
        ("0/0/1/-1/9", 502, "SH--", Outcome.ERROR, {"receive": 0, "queue": 0, "connect": 1}),
    ],
)
def test_haproxy_that_did_not_come_far(
    timers: str, code: int, state: str, outcome: Outcome, found: dict[str, float]
) -> None:
    """-1 is missing, and the termination state tells who gave up."""
    line = HAPROXY.replace("10/5/30/69/120 200", f"{timers} {code}").replace("----", state)
    columns = read("haproxy", line).only
    assert columns.outcome.tolist() == [outcome]
    assert stages(columns) == found


def test_a_total_before_the_end_is_none() -> None:
    """With logasap the total is what had passed so far."""
    decoded = read("haproxy", HAPROXY.replace("/120 200 2750", "/+120 200 +2750"))
    assert [r.reason for r in decoded.rejected] == ["rejected.no_total"]


def test_traefik() -> None:
    """Text has milliseconds, JSON nanoseconds and the origin's share."""
    columns = read("traefik", TRAEFIK).only
    assert columns.total_ms.tolist() == [123]
    assert dict(columns.cohorts[0])["upstream"] == "chat@docker"
    line = {
        "StartUTC": "2026-03-02T10:00:00.123456789Z", "Duration": 45_500_000,
        "OriginDuration": 40_000_000, "DownstreamStatus": 200, "RetryAttempts": 1,
        "RequestPath": "/v1/chat?x", "RequestMethod": "GET", "ServiceName": "chat@docker",
    }  # fmt: skip
    columns = read("traefik", line).only
    assert columns.total_ms.tolist() == [45.5]
    assert columns.ts_ns.tolist() == [at_ns(2026, 3, 2, 10) + 123_456_789]
    assert stages(columns) == {"upstream": 40}
    assert dict(columns.cohorts[0])["upstream_attempts"] == "2"


LINES = {
    "nginx": f"{NGINX} rt=0.200",
    "envoy": ENVOY,
    "aws_alb": ALB,
    "haproxy": HAPROXY,
    "traefik": TRAEFIK,
}


@pytest.mark.parametrize("name", LINES)
def test_files_are_recognised(name: str, tmp_path: Path) -> None:
    """A line tells which proxy wrote it; the file may have another line first."""
    for lines in ([LINES[name]] * 5, ["starting up", *[LINES[name]] * 4]):
        path = tmp_path / "access.log"
        path.write_text("\n".join(lines) + "\n")
        reading = open_log(path, now_ns=NOW_NS)
        assert reading.found.format == name
        log = Read(reading)
        assert len(log.only) + len(log.rejected) == 5


@pytest.mark.parametrize("name", LINES)
def test_no_line_is_of_two_formats(name: str) -> None:
    """A line is recognised by its own decoder alone."""
    assert [one.name for one in ACCESS_LOGS if one.recognises(LINES[name])] == [name]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(LINES)), st.integers(0, 400), st.text(max_size=6), st.booleans())
def test_damaged_lines_never_raise(name: str, at: int, text: str, cut: bool) -> None:  # noqa: FBT001
    """A line that was cut, or has something else in it, is read or rejected."""
    line = LINES[name]
    damaged = (line[:at] + text + ("" if cut else line[at:])).encode("utf-8", "surrogatepass")
    read_ = decoder(name, RULES).decode([SourceMessage(damaged.replace(b"\n", b" "), 0, NOW_NS)])
    found = sum(map(len, read_.services)) + len(read_.rejected)
    counted = {reason.partition(".")[0] for _, _, reason in read_.ledger}
    assert found == 1 or counted & {"quarantined", "tombstone"}


def test_a_long_line_does_not_take_long() -> None:
    """Patterns do not try endless ways to read a line of a megabyte."""
    for name in LINES:
        for piece in ('"a ', "[x] ", "0.1, ", "1/2/3/", "a=b ", "\\"):
            line = (LINES[name][:60] + piece * (400_000 // len(piece))).encode()
            decoder(name, RULES).decode([SourceMessage(line, 0, NOW_NS)])

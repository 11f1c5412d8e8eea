"""A message or two of every format: of real files where there are any, else as the tools write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import orjson
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

DATA: Final = Path(__file__).resolve().parents[1] / "data"
T0_NS: Final = 1_772_445_600 * 10**9


def _text(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def _lines(name: str, count: int = 3) -> list[bytes]:
    return (DATA / name).read_bytes().splitlines()[:count]


def _elements(name: str, count: int = 3) -> list[bytes]:
    return [orjson.dumps(one) for one in json.loads(_text(name))[:count]]


def _trace(**more: Any) -> dict[str, Any]:
    span = {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": "00f067aa0ba902b7",
        "name": "llm_request",
        "kind": 2,
        "startTimeUnixNano": str(T0_NS),
        "endTimeUnixNano": str(T0_NS + 10**9),
        "attributes": [
            {"key": "gen_ai.latency.time_to_first_token", "value": {"doubleValue": 0.25}},
            {"key": "http.response.status_code", "value": {"intValue": "200"}},
        ],
    }
    child = {**span, "spanId": "00f067aa0ba902b8", "parentSpanId": span["spanId"], "kind": 1}
    scopes = [{"spans": [{**span, **more}, child]}]
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": scopes}]}


def _proto() -> bytes:
    return bytes(json_format.ParseDict(_trace(), TracesData()).SerializeToString())


NATIVE: Final = orjson.dumps(
    {
        "request_id": "a", "timestamp": 1_772_445_600, "total_ms": 12.5, "status": "ok",
        "queue_ms": 1, "route": "/v1", "ttft_ms": 3.5, "output_tokens": 4, "weight": 2,
    }
)  # fmt: skip
_VLLM: Final = {
    "request_throughput": 2.0, "input_lens": [10, 20], "output_lens": [3, 1], "ttfts": [0.1, 0.2],
    "itls": [[0.01, 0.02], []], "errors": ["", ""], "model_id": "m",
}  # fmt: skip
_GUIDELLM: Final = {
    "benchmarks": [
        {
            "requests": {
                "successful": [
                    {
                        "request_id": "a", "request_latency": 0.5, "time_to_first_token_ms": 120.0,
                        "inter_token_latency_ms": 9.0, "start_time": 1_772_445_600.0,
                    }
                ],
                "errored": [], "incomplete": [],
            }
        }
    ]
}  # fmt: skip
_DYNAMO: Final = {
    "schema": "dynamo.request.trace.v1", "event_type": "request_end",
    "request": {
        "request_id": "r", "request_received_ms": 1_772_445_600_000, "ttft_ms": 100.0,
        "total_time_ms": 600.0, "avg_itl_ms": 50.0, "output_tokens": 11,
    },
}  # fmt: skip
_TRITON: Final = [
    {"id": 1, "model_name": "m", "model_version": 1},
    {
        "id": 1,
        "timestamps": [
            {"name": name, "ns": 1_000_000 * at}
            for at, name in enumerate(
                ("REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_END", "REQUEST_END"), 1
            )
        ],
    },
]

SAMPLES: Final[dict[str, list[bytes]]] = {
    "native": [NATIVE, NATIVE + b"\n" + NATIVE],
    "aiperf": _lines("aiperf_v0.5_profile_export.jsonl", 1)
    + _lines("aiperf_v0.1_profile_export.jsonl"),
    "llmperf": _elements("llmperf_bedrock_70b_individual.json"),
    "otlp_json": [orjson.dumps(_trace()), _text("otlp_trace_example.json").encode()],
    "otlp_proto": [_proto()],
    "otel_spans": [_text("inferenceperf_otel_customer_support.json").encode()],
    "jaeger": [
        orjson.dumps(one)
        for one in json.loads(_text("deathstarbench_jaeger_head.json"))["data"][:1]
    ],
    "zipkin": [_text("zipkin_messaging-kafka.json").encode()],
    "nginx": _lines("nginx_ingress_access.log"),
    "envoy": [
        (
            b'[2026-03-02T10:00:00.000Z] "GET /v1/chat HTTP/1.1" 200 - 12 34 560 540 "10.0.0.1"'
            b' "curl/8" "5b1e" "chat.example" "10.0.0.2:80"'
        )
    ],
    "aws_alb": [
        (
            b"https 2026-03-02T10:00:01.000000Z app/lb/50dc 192.168.131.39:2817 10.0.0.1:80 0.001"
            b' 0.240 0.005 200 200 34 366 "GET https://a.example:443/v1 HTTP/1.1" "curl" - - arn:x'
            b' "Root=1-5"'
            b' "-" "-" 0 2026-03-02T10:00:00.754000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"'
        )
    ],
    "haproxy": [
        (
            b"Mar  2 10:00:00 lb haproxy[14389]: 10.0.1.2:33317 [02/Mar/2026:10:00:00.655] http-in"
            b' static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET /a HTTP/1.1"'
        )
    ],
    "traefik": [
        (
            b'{"StartUTC":"2026-03-02T10:00:00Z","Duration":560000000,"OriginDuration":540000000,'
            b'"DownstreamStatus":200,"RequestPath":"/v1","RouterName":"r"}'
        )
    ],
    "guidellm": [orjson.dumps(_GUIDELLM), _text("guidellm_report_v2.json").encode()[:4000]],
    "vllm_bench": [orjson.dumps(_VLLM)],
    "perf_analyzer": [
        _text("triton_perf_analyzer_decoupled.json").encode(),
        _text("triton_known_error_file.json").encode(),
    ],
    "triton": [orjson.dumps(_TRITON)],
    "dynamo": [orjson.dumps(_DYNAMO), orjson.dumps({"timestamp": 5, "event": _DYNAMO})],
    "tgi": [
        (
            b'2026-03-02T10:00:01.500000Z  INFO generate{total_time="1.5s" validation_time="35.1ms"'
            b' queue_time="120.5us" inference_time="1.46s" time_per_token="19ms" seed="None"}:'
            b" text_generation_router::server: server.rs:457: Success"
        )
    ],
    "sglang_log": [
        (
            b"[2026-03-02 10:00:01] Finish: obj=GenerateReqInput(text='x'), out={'text': 'x',"
            b" 'meta_info': {'id': '5c3f', 'prompt_tokens': 12, 'completion_tokens': 8,"
            b" 'e2e_latency': 0.75, 'queue_time': 0.125}}"
        )
    ],
    "torchserve": [
        (
            b"2026-03-02T10:00:00,118 [INFO ] nioEventLoopGroup-3-1 ACCESS_LOG - /127.0.0.1:40592"
            b' "POST /predictions/resnet HTTP/1.1" 200 118'
        )
    ],
    "ray_serve": [
        b"INFO 2026-03-02 10:00:00,118 app_chat 7dzumm5b b9d29fbb -- POST /v1 200 118.5ms"
    ],
    "kserve": [
        (
            b"2026-03-02 10:00:00.118 kserve.trace requestId: N.A., preprocess_ms: 0.1,"
            b" explain_ms: 0, predict_ms: 117.2, postprocess_ms: 0.2"
        )
    ],
}
"""By format. Most are read; the others are what people mistake for it."""

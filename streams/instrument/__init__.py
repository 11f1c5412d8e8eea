"""How a live service makes records: timing of requests and stages, and a way to Kafka.

The contract of the family:

- It never breaks a service. Nothing here raises while requests run, exceptions of the service
  pass unchanged, and what cannot be recorded is dropped, counted by reason, and logged once.
- It never slows one. A request pays for clock readings and an append to a queue; JSON, packing
  and Kafka are the work of one thread, which lets others run after every few records.
- It is light: it imports orjson, confluent-kafka and the standard library, so that a service
  need not load what reads its records.

A request goes `scope` (its clock: `spans`, filled by `stage`) -> `producer` (`sampling`, a queue)
-> `shipper` (the thread; `row` writes the JSON, `counters` what became of it). `asgi` makes
scopes for HTTP applications, `collector` stands for the producer in tests.
"""

from __future__ import annotations

from tailbudget.streams.instrument.asgi import RecordMiddleware, raw_path, route_template
from tailbudget.streams.instrument.collector import Collector
from tailbudget.streams.instrument.counters import DROPS, ProducerStats
from tailbudget.streams.instrument.producer import Limits, RecordProducer
from tailbudget.streams.instrument.sampling import Sampling
from tailbudget.streams.instrument.scope import Request, current_request, request
from tailbudget.streams.instrument.sink import Column, Finished, Sink
from tailbudget.streams.instrument.stage import stage_timer

__all__ = [
    "DROPS",
    "Collector",
    "Column",
    "Finished",
    "Limits",
    "ProducerStats",
    "RecordMiddleware",
    "RecordProducer",
    "Request",
    "Sampling",
    "Sink",
    "current_request",
    "raw_path",
    "request",
    "route_template",
    "stage_timer",
]

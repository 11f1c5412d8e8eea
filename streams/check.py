"""Is everything there that a worker needs? Each finding says what is wrong and how to mend it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from confluent_kafka.admin import AdminClient

from tailbudget.schemas.errors import ConfigError, TailbudgetError
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.chat import AppriseChat
from tailbudget.streams.data_directory import running_worker
from tailbudget.streams.delivery.trial import trial
from tailbudget.streams.kafka import admin, await_broker, kafka_config
from tailbudget.streams.lag import collect, total
from tailbudget.streams.sql import ask_worker
from tailbudget.streams.topics import (
    TopicSpec,
    cleanup_policies,
    partition_problems,
    policy_problems,
    topic_specs,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, and what was found.

    Attributes:
        subject: what was looked at, such as "topic tailbudget.panes".
        ok: whether it is as it should be.
        what: what was found.
        remedy: how to mend it; empty when it is fine.
    """

    subject: str
    ok: bool
    what: str
    remedy: str = ""


def check(settings: Settings, *, patience_s: float = 10.0) -> Iterator[Finding]:
    """Look at the settings, the broker, the topics, ClickHouse and the chat channels.

    Findings come as they are made, for a service that is away takes its time. A part that is
    away does not keep the others from being looked at. Nothing is changed and nothing is sent.

    Args:
        settings: what to look at.
        patience_s: how long to wait for the broker.
    """
    yield from _settings(settings)
    yield from _kafka(settings, patience_s)
    yield _clickhouse(settings)
    yield from _chat(settings)


def _settings(settings: Settings) -> Iterator[Finding]:
    promised = sorted(name for name in settings.services if settings.service(name).slo)
    if settings.defaults.slo:
        what = "every service has an SLO"
    elif promised:
        what = f"SLO set for {', '.join(promised)}"
    else:
        what = "no service has an SLO (defaults.slo, services.NAME.slo): nothing can be breached"
    yield Finding("settings", True, what)
    authority = settings.kafka.ssl_ca
    if authority is not None and not os.access(authority, os.R_OK):
        yield Finding(
            "kafka.ssl_ca", False, f"{authority} cannot be read", "give a file that is readable"
        )


def _kafka(settings: Settings, patience_s: float) -> Iterator[Finding]:
    kafka = settings.kafka
    config = kafka_config(kafka)
    try:
        present = await_broker(config, timeout_s=patience_s)
        yield Finding("broker", True, f"answers at {kafka.bootstrap}")
        client = admin(config)
        yield from _topics(settings, client, present)
        yield _lag(settings, client, present)
    except TailbudgetError as error:
        yield _from_error("broker", error)


def _topics(
    settings: Settings, client: AdminClient, present: Mapping[str, int]
) -> Iterator[Finding]:
    specs = topic_specs(settings.kafka)
    existing = [spec.name for spec in specs if spec.name in present]
    policies = cleanup_policies(client, existing) if existing else {}
    for spec in specs:
        yield from _topic(spec, present, policies.get(spec.name, ""))


def _topic(spec: TopicSpec, present: Mapping[str, int], policy: str) -> Iterator[Finding]:
    subject = f"topic {spec.name}"
    if spec.name not in present:
        remedy = "a worker creates it when it starts"
        if not spec.ours:
            remedy += "; if records should be there already, correct kafka.requests"
        yield Finding(subject, False, "does not exist", remedy)
        return
    problems = [*partition_problems(spec, present), *policy_problems(spec, policy)]
    yield from (Finding(subject, False, what, remedy) for what, remedy in problems)
    if not problems:
        count = present[spec.name]
        yield Finding(subject, True, f"{count} partition{'' if count == 1 else 's'}")


def _lag(settings: Settings, client: AdminClient, present: Mapping[str, int]) -> Finding:
    topics = {r.topic: present[r.topic] for r in settings.kafka.requests if r.topic in present}
    lags = collect(client, settings.kafka.group, topics)
    subject = f"lag of group {settings.kafka.group}"
    if not lags:
        return Finding(subject, True, "unknown: no request topic exists")
    behind = total(lags)
    if behind is not None:
        return Finding(subject, True, f"{behind:,} messages over {len(lags)} partitions")
    unknown = sum(each.lag is None for each in lags)
    return Finding(
        subject, True, f"unknown: no committed offset in {unknown} of {len(lags)} partitions"
    )


def _clickhouse(settings: Settings) -> Finding:
    clickhouse = settings.clickhouse
    try:
        if clickhouse.interface == "chdb":
            worker = running_worker(settings.data_dir)
            if worker is not None:
                return _through_worker(worker)
            if not clickhouse.path.exists():
                return Finding("clickhouse", True, f"{clickhouse.path} is new: nothing stored yet")
        from tailbudget.streams.database import open_database  # noqa: PLC0415

        with closing(open_database(clickhouse)) as database:
            version = database.version
            database.require_current()
        where = clickhouse.path if clickhouse.interface == "chdb" else clickhouse.host
        return Finding("clickhouse", True, f"{version} at {where}, tables up to date")
    except TailbudgetError as error:
        return _from_error("clickhouse", error)


def _through_worker(worker: Mapping[str, Any]) -> Finding:
    rows = ask_worker(worker, "SELECT version()").rows
    return Finding("clickhouse", True, f"{rows[0][0]}, owned by worker {worker.get('pid', '?')}")


def _chat(settings: Settings) -> Iterator[Finding]:
    if not settings.chat:
        yield Finding("chat", True, "no channel: alerts go to the topic and to ClickHouse only")
    for channel in settings.chat:
        subject = f"chat channel {channel.name}"
        try:
            AppriseChat(channel)
        except TailbudgetError as error:
            yield _from_error(subject, error)
        else:
            yield Finding(subject, True, f"hears of {', '.join(channel.services)}")


def send_test(settings: Settings, name: str) -> Finding:
    """Send one message to a channel, so that somebody can see it there; it is not tried again.

    Raises:
        ConfigError: no channel of that name is set.
    """
    channel = next((one for one in settings.chat if one.name == name), None)
    if channel is None:
        names = ", ".join(one.name for one in settings.chat) or "none is set"
        raise ConfigError(f"there is no chat channel {name!r}", remedy=f"channels: {names}")
    subject = f"chat channel {name}"
    try:
        chat = AppriseChat(channel)
        chat.send(trial(chat.limits))
    except TailbudgetError as error:
        return _from_error(subject, error)
    return Finding(subject, True, "took a test message: look whether it is there")


def _from_error(subject: str, error: TailbudgetError) -> Finding:
    return Finding(subject, False, error.message, error.remedy)

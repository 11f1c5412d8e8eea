"""How a request topic's records are read, from the settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tailbudget.schemas.kafka import RequestTopic
from tailbudget.schemas.services import ServiceSettings
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.token_timing import DEFINITIONS, GoodputTarget, TokenTiming
from tailbudget.streams.mapping_file import load_mapping, mapped
from tailbudget.streams.sources import Rules, ServiceRules


def rules(settings: Settings, entry: RequestTopic) -> Rules:
    """Return the decoder's rules for one request topic.

    Raises:
        ConfigError: its mapping file cannot be read, or says what cannot be meant.
    """
    said = load_mapping(entry.mapping) if entry.mapping else None
    return Rules(
        service=entry.service,
        default=_service_rules(settings.defaults),
        services={name: _service_rules(settings.service(name)) for name in settings.services},
        max_record_bytes=settings.stream.max_record_bytes,
        max_future_ns=int(settings.stream.max_future_s * 1e9),
        timezone=said.timezone if said else None,
        mapping=mapped(said) if said else None,
        pattern=entry.pattern,
        trace_wait_ns=int(entry.trace_wait_s * 1e9),
    )


def log_rules(settings: Settings) -> Rules | None:
    """Return the rules for reading a log; None where the settings say nothing of its columns."""
    told = {"covariates", "cohort_dims", "stages"}
    said = [settings.defaults, *settings.services.values()]
    if not any(told & one.model_fields_set for one in said):
        return None
    return replace(rules(settings, RequestTopic(topic="log")), trace_wait_ns=None)


def declared_workload(settings: Settings, service: str) -> str | None:
    """Return what the settings say that a service's workload is; None when they say nothing."""
    chosen = settings.service(service)
    return chosen.workload if "workload" in chosen.model_fields_set else None


def goodput(settings: Settings, service: str) -> GoodputTarget | None:
    """Return what a good request of a service keeps; None where nothing is promised."""
    own = settings.service(service).goodput
    return own.target() if own else None


def token_timing(
    settings: Settings, service: str, formats: Iterable[str] | None = None
) -> TokenTiming | None:
    """Return what a service's records mean by times of tokens; None where nobody says.

    Args:
        settings: which may say it.
        service: its name.
        formats: of its records; None takes those of the topics that may carry it. They say it
            where all mean the same.
    """
    own = settings.service(service).token_timing
    if own is not None:
        return own.definition()
    topics = (one for one in settings.kafka.requests if one.service in (None, service))
    names = [one.format for one in topics] if formats is None else formats
    found = {DEFINITIONS.get(name) for name in names}
    return found.pop() if len(found) == 1 else None


def _service_rules(service: ServiceSettings) -> ServiceRules:
    return ServiceRules(
        covariates=tuple(service.covariates),
        cohort_dims=tuple(service.cohort_dims),
        stages=None if service.stages is None else tuple(service.stages),
    )

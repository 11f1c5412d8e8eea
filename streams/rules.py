"""How a request topic's records are read, from the settings."""

from __future__ import annotations

from dataclasses import replace

from tailbudget.schemas.kafka import RequestTopic
from tailbudget.schemas.services import ServiceSettings
from tailbudget.schemas.settings import Settings
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


def _service_rules(service: ServiceSettings) -> ServiceRules:
    return ServiceRules(
        covariates=tuple(service.covariates),
        cohort_dims=tuple(service.cohort_dims),
        stages=None if service.stages is None else tuple(service.stages),
    )

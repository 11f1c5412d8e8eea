"""Settings: defaults, layers, merging, and errors that tell all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.kafka import RequestTopic
from tailbudget.schemas.services import ServiceSettings
from tailbudget.schemas.settings import Settings, load, parse_slo
from tailbudget.schemas.settings_base import Group
from tailbudget.schemas.slo import SloTarget

EXAMPLE = Path(__file__).parents[3] / "tailbudget.example.yaml"

Load = Callable[..., Settings]
Fail = Callable[..., str]


@pytest.fixture
def read(tmp_path: Path) -> Load:
    """Return a function that loads settings from a text and an environment."""

    def read_text(text: str, environ: Mapping[str, str] | None = None) -> Settings:
        path = tmp_path / "tailbudget.yaml"
        path.write_text(text, encoding="utf-8")
        return load(path, environ or {})

    return read_text


@pytest.fixture
def refused(read: Load, tmp_path: Path) -> Fail:
    """Return a function that loads wrong settings and returns the error's text."""

    def refuse(text: str, environ: Mapping[str, str] | None = None) -> str:
        with pytest.raises(ConfigError) as caught:
            read(text, environ)
        assert caught.value.exit_status == 2
        return str(caught.value).replace(f"{tmp_path}/", "")

    return refuse


def test_the_example_holds_every_key_with_its_default() -> None:
    """The documented file loads, names every setting, and says the true defaults."""
    said = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    settings = load(EXAMPLE, {})
    assert _keys(said) - {"services"} == _model_keys(Settings) - {"services"}
    assert set(said["kafka"]["requests"][0]) == set(RequestTopic.model_fields)
    defaults = Settings().model_dump(exclude={"services"})
    assert settings.model_dump(exclude={"services"}) == defaults
    assert settings.service("chat").slo == SloTarget(800, 2500, 4000, 1.0)
    assert settings.service("search").slo == SloTarget(None, 300, 500, 1.0)


def _keys(values: Mapping[str, Any]) -> set[str]:
    nested = {f"{k}.{n}" for k, v in values.items() if isinstance(v, dict) for n in v}
    return {k for k, v in values.items() if not isinstance(v, dict)} | {
        name for name in nested if not name.startswith("services.")
    }


def _model_keys(model: type[Group]) -> set[str]:
    keys = set()
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, Group):
            keys |= {f"{name}.{key}" for key in inner.model_fields}
        else:
            keys.add(name)
    return keys


def test_no_file_and_no_environment_give_the_defaults() -> None:
    """Nothing has to be set."""
    assert load(None, {"HOME": "/root"}) == Settings()


@pytest.mark.parametrize("text", ["", "# nothing\n", "kafka:\nservices:\nchat:\n", "{}"])
def test_an_empty_section_has_its_defaults(read: Load, text: str) -> None:
    """A file or section whose keys are all commented out says nothing."""
    assert read(text) == Settings()


def test_the_environment_overrides_the_file(read: Load) -> None:
    """A variable wins over the file, at any depth, and is read by the type of its setting."""
    settings = read(
        "kafka: {bootstrap: 'a:1', partitions: 2}\nservices: {chat: {slo: {p99_ms: 100}}}",
        {
            "TAILBUDGET_KAFKA__BOOTSTRAP": "b:2",
            "TAILBUDGET_KAFKA__CONTIGUOUS": "true",
            "TAILBUDGET_KAFKA__REQUESTS": '[{"topic": "t", "service": "s"}]',
            "TAILBUDGET_SERVICES__CHAT__SLO__P50_MS": "20.5",
            "TAILBUDGET_DEFAULTS__SLO": "p95=70",
            "TAILBUDGET_CLICKHOUSE__PASSWORD": "007",
            "TAILBUDGET_CHAT__0__NAME": "ops",
            "TAILBUDGET_CHAT__0__URL": "json://h/p",
        },
    )
    assert (settings.kafka.bootstrap, settings.kafka.partitions) == ("b:2", 2)
    assert settings.kafka.contiguous is True
    assert [(r.topic, r.service) for r in settings.kafka.requests] == [("t", "s")]
    assert settings.service("chat").slo == SloTarget(p50_ms=20.5, p99_ms=100.0)
    assert settings.service("other").slo == SloTarget(p95_ms=70.0)
    assert settings.clickhouse.password.get_secret_value() == "007"
    assert [channel.name for channel in settings.chat] == ["ops"]


def test_variables_that_are_no_settings_are_left_alone() -> None:
    """The path of the file and what tests are told are no overrides."""
    environ = {"TAILBUDGET_CONFIG": "x.yaml", "TAILBUDGET_TEST_BOOTSTRAP": "h:1", "TAIL": "1"}
    assert load(None, environ) == Settings()


def test_secrets_come_from_the_environment(read: Load) -> None:
    """`${NAME}` is replaced in any text, and a doubled dollar keeps it."""
    settings = read(
        "chat: [{name: a, url: 'slack://${TOKEN}/B/C'}]\nkafka: {sasl_username: '$${X}', "
        "sasl_password: '${PW}', sasl_mechanism: plain, security_protocol: sasl_ssl}",
        {"TOKEN": "t${PW}", "PW": "hunter2"},
    )
    assert settings.chat[0].url.get_secret_value() == "slack://t${PW}/B/C"
    assert settings.kafka.sasl_username == "${X}"
    assert settings.kafka.sasl_password is not None
    assert settings.kafka.sasl_password.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in str(settings.model_dump())


def test_every_error_is_told_at_once(refused: Fail) -> None:
    """One message holds every problem, each with path, place, what was given and the remedy."""
    text = """\
kafka:
  boostrap: x:1
  partitions: 0
services:
  chat:
    slo: {p50_ms: 10, p95_ms: 5, p99_ms: -1}
stream: {pane_s: 7}
"""
    message = refused(text, {"TAILBUDGET_KAFKA__GROUP": "a b", "TAILBUDGET_STREM__PANE_S": "1"})
    assert message == (
        "tailbudget.yaml has 7 problems\n"
        "  TAILBUDGET_STREM__PANE_S: names no setting\n"
        "    remedy: did you mean TAILBUDGET_STREAM?\n"
        "  kafka.group (TAILBUDGET_KAFKA__GROUP): 'a b' is not of the right form\n"
        "    remedy: consumer group that all workers join; default tailbudget\n"
        "  kafka.partitions (line 3): 0 is below 1\n"
        "    remedy: partitions of topics that we create; default 4\n"
        "  kafka.boostrap (line 2): no such key\n"
        "    remedy: did you mean 'bootstrap'?\n"
        "  stream.pane_s (line 7): 7 does not divide 60\n"
        "    remedy: use 1, 2, 3, 4, 5, 6, 10, 12, 15, 20 or 30\n"
        "  services.chat.slo.p95_ms (line 6): 5 is below p50_ms (10.0)\n"
        "    remedy: a higher percentile is never faster: p50_ms <= p95_ms <= p99_ms\n"
        "  services.chat.slo.p99_ms (line 6): -1 is not above 0\n"
        "    remedy: 99 % of the requests are no slower\n"
        "  remedy: mend them all, then run `tailbudget check`"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kafka: {replication: yes}", "kafka.replication (line 1): True is a truth value"),
        ("kafka: [1]", "kafka (line 1): is no mapping of keys"),
        ("kafka: {requests: {}}", "kafka.requests (line 1): is no list"),
        ("kafka: {requests: []}", "kafka.requests (line 1): has too few entries"),
        ("kafka: {requests: [{topic: 'a b'}]}", "kafka.requests[0].topic (line 1): 'a b' is not"),
        ("kafka: {requests: [{}]}", "kafka.requests[0].topic (line 1): is missing"),
        ("kafka: {requests: [{topic: a}, {topic: a}]}", "names 'a' twice"),
        ("kafka: {requests: [{topic: tailbudget.panes}]}", "is one of our own topics"),
        ("kafka: {bootstrap: localhost}", "'localhost' is not of the right form"),
        ("kafka: {session_timeout_s: 4}", "kafka.heartbeat_s (line 1): is more than half"),
        ("kafka: {security_protocol: SASL_SSL}", "needs sasl_mechanism, sasl_username, sasl_pass"),
        ("kafka: {sasl_username: u}", "have no effect with security_protocol PLAINTEXT"),
        ("clickhouse: {interface: ftp}", "'ftp' is not one of the choices"),
        ("clickhouse: {port: 70000}", "70000 is above 65535"),
        ("clickhouse: {database: 'a; b'}", "'a; b' is not of the right form"),
        ("stream: {grace_s: .nan}", "stream.grace_s (line 1): nan is no finite number"),
        ("defaults: {slo: {error_budget_pct: 100}}", "100 is not below 100"),
        ("defaults: {slo: {error_budget_pct: 0}}", "0 is not above 0"),
        ("defaults: {slo: 'p50=300,p99=200'}", "defaults.slo.p99_ms (line 1): is below p50_ms"),
        ("defaults: {slo: fast}", "has the part 'fast', which is not NAME=MILLISECONDS"),
        ("defaults: {stages: [queue_ms]}", "'queue_ms' ends in _ms\n  remedy: write 'queue'"),
        ("defaults: {stages: [total]}", "'total' is kept for ourselves"),
        ("defaults: {cohort_dims: [a, a]}", "names 'a' twice"),
        ("defaults: {covariates: [route]}", "'route' is both a covariate and a cohort dimension"),
        (
            "defaults: {covariates: [x]}\nservices: {c: {cohort_dims: [x]}}",
            "services (line 2): c: 'x' is both a covariate and a cohort dimension (one of them",
        ),
        ("chat: [{name: a, url: 'json://h'}, {name: a, url: 'json://h'}]", "two channels 'a'"),
        ("log_level: loud", "use 'debug', 'info', 'warning' or 'error'"),
        ("services: {'': {}}", "services.'' (line 1): is empty"),
    ],
)
def test_a_wrong_value_is_named(refused: Fail, text: str, expected: str) -> None:
    """Each kind of wrong value is told with its path and what is wrong about it."""
    assert expected in refused(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: b: c", "tailbudget.yaml, line 1, column 5: no valid YAML: mapping values"),
        ("kafka:\n\tgroup: x", "tailbudget.yaml, line 2, column 1: no valid YAML"),
        ("kafka: {}\nkafka: {}\n", "line 2, column 1: kafka is given twice (first on line 1)"),
        ("a: &x [*x]", "line 1, column 4: an alias holds itself"),
        ("- a", "tailbudget.yaml, line 1: this is no mapping of keys"),
        ("just text", "tailbudget.yaml, line 1: this is no mapping of keys"),
        ("a: \x00", "tailbudget.yaml is no YAML"),
    ],
)
def test_what_is_no_yaml_is_named_by_line(refused: Fail, text: str, expected: str) -> None:
    """A file that is no proper YAML says the line and column of the problem."""
    assert expected in refused(text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A path that leads nowhere, or to a directory, is told with what to do."""
    with pytest.raises(ConfigError, match=r"none\.yaml does not exist") as caught:
        load(tmp_path / "none.yaml", {})
    assert "--config" in caught.value.remedy
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path, {})
    (tmp_path / "latin").write_bytes(b"kafka: \xe9")
    with pytest.raises(ConfigError, match="no UTF-8"):
        load(tmp_path / "latin", {})


def test_a_missing_secret_is_named_by_its_variable(refused: Fail) -> None:
    """A variable that is not set is told once, with the key that wants it."""
    message = refused("clickhouse: {password: '${NO_SUCH}'}")
    assert message == (
        "tailbudget.yaml: clickhouse.password (line 1): environment variable NO_SUCH is not set\n"
        "  remedy: export NO_SUCH=…"
    )


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        ("chat: [{name: x, url: hunter2}]", {}),
        ("kafka: {sasl_password: [hunter2]}", {}),
        ("clickhouse: {password: {x: hunter2}}", {}),
        ("clickhouse: {port: '${PW}'}", {"PW": "hunter2"}),
        ("kafka: {sasl_username: u, sasl_password: hunter2}", {}),
        ("", {"TAILBUDGET_CHAT__0__URL": "hunter2", "TAILBUDGET_CHAT__0__NAME": "x"}),
        ("", {"TAILBUDGET_KAFKA__SASL_PASSWORD": "hunter2"}),
    ],
)
def test_an_error_never_shows_a_secret(
    refused: Fail, text: str, environ: Mapping[str, str]
) -> None:
    """Secrets, and what came out of the environment by `${NAME}`, stay out of the messages."""
    assert "hunter2" not in refused(text, environ)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("TAILBUDGET_KAFKA__PARTITONS", "3", "did you mean TAILBUDGET_KAFKA__PARTITIONS?"),
        ("TAILBUDGET_KAFKA__REQUESTS", "[{", "is no JSON"),
        ("TAILBUDGET_KAFKA__REQUESTS__4__TOPIC", "x", "there is no place for kafka.requests[4]"),
        ("TAILBUDGET_KAFKA__GROUP__X", "1", "names no setting"),
        ("TAILBUDGET_KAFKA__REQUESTS__FIRST", "1", "names no setting"),
    ],
)
def test_a_wrong_variable_is_named(refused: Fail, name: str, value: str, expected: str) -> None:
    """A variable that is no setting, or holds no JSON, is told by its name."""
    message = refused("kafka: {requests: [{topic: t}]}", {name: value})
    assert name in message
    assert expected in message


def test_a_service_has_the_defaults_for_what_it_leaves_out(read: Load) -> None:
    """A key of a service replaces the default, and an unknown service has them all."""
    settings = read(
        "defaults: {slo: {p50_ms: 10, p99_ms: 90}, cold_start_window_min: 2, cohort_dims: [a]}\n"
        "services: {chat: {slo: {p99_ms: 300}, stages: [queue]}, batch: {slo: null}}"
    )
    chat = settings.service("chat")
    assert (chat.slo, chat.stages) == (SloTarget(p99_ms=300.0), ("queue",))
    assert (chat.cold_start_window_min, chat.cohort_dims) == (2.0, ("a",))
    assert settings.service("batch").slo is None
    assert settings.service("batch").target() == SloTarget()
    assert settings.service("never seen") == settings.defaults
    assert settings.service("chat").covariates == ServiceSettings().covariates


def test_the_engine_lives_in_the_data_directory_unless_told(read: Load) -> None:
    """data_dir moves the embedded engine along; an own path stays."""
    assert read("data_dir: /srv/tb").clickhouse.path == Path("/srv/tb/clickhouse")
    own = read("data_dir: /srv/tb\nclickhouse: {path: /fast/ch}")
    assert own.clickhouse.path == Path("/fast/ch")


def test_our_topics_begin_with_the_prefix(read: Load) -> None:
    """The names of our own topics follow from the prefix."""
    kafka = read("kafka: {prefix: a.b}").kafka
    assert kafka.own_topics == (
        "a.b.panes",
        "a.b.deploys",
        "a.b.alerts",
        "a.b.dead-letters",
        "a.b.signals",
        "a.b.models",
    )
    assert kafka.dead_letters_topic == "a.b.dead-letters"


def test_settings_do_not_change(read: Load) -> None:
    """What was loaded stays as it is."""
    with pytest.raises(ValueError, match="frozen"):
        read("").kafka.group = "x"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("p50=100,p95=180,p99=200,budget=1", SloTarget(100, 180, 200, 1.0)),
        (" p99_ms = 2e3 , error_budget_pct=0.1 ", SloTarget(None, None, 2000, 0.1)),
        ("p95=180", SloTarget(p95_ms=180)),
    ],
)
def test_a_target_is_read_from_text(text: str, target: SloTarget) -> None:
    """The text form of a target knows short and long names, and leaves out what is not promised."""
    assert parse_slo(text) == target


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "names no percentile"),
        ("p50", "has the part 'p50'"),
        ("p50=1,p50_ms=2", "gives p50_ms twice"),
        ("p42=3", "p42: no such key"),
        ("p95=fast", "p95_ms: 'fast' is no number"),
        ("p95=inf", "p95_ms: 'inf' is no finite number"),
        ("p50=300,p99=200", "p99_ms: '200' is below p50_ms (300.0)"),
        ("p99=200,budget=100", "error_budget_pct: '100' is not below 100"),
    ],
)
def test_a_wrong_target_text_is_told(text: str, expected: str) -> None:
    """A text that makes no target says which part is wrong."""
    with pytest.raises(ConfigError) as caught:
        parse_slo(text)
    assert expected in caught.value.message
    assert caught.value.remedy


MS = st.floats(min_value=0.001, max_value=1e9)


@given(st.lists(MS, min_size=3, max_size=3).map(sorted), st.floats(0.001, 99.9))
def test_a_target_survives_its_text(latencies: list[float], budget: float) -> None:
    """Any ascending target read back from its own text is the same."""
    p50, p95, p99 = latencies
    text = f"p50={p50!r},p95={p95!r},p99={p99!r},budget={budget!r}"
    assert parse_slo(text) == SloTarget(p50, p95, p99, budget)


@given(st.text(max_size=40))
def test_any_text_loads_or_says_why(text: str) -> None:
    """No text makes the target's reader fail in another way than it says."""
    try:
        parse_slo(text)
    except ConfigError as error:
        assert error.message  # noqa: PT017 (both outcomes are right)

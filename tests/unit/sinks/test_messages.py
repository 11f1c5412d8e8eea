"""The words of alerts, that they fit into any channel, and their picture."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from alerts import BURN, SECOND_NS, T0_NS, breach, burn
from audits import HOSTILE
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import SecretStr

from tailbudget.schemas.connections import ChatChannel
from tailbudget.schemas.messages import Draft, Limits
from tailbudget.sinks.chat import AppriseChat
from tailbudget.sinks.chat_text import query_text
from tailbudget.sinks.messages.fit import fit, plain, shorten
from tailbudget.sinks.messages.grouped import drafted
from tailbudget.sinks.messages.limits import backslashes, either, entities, units
from tailbudget.sinks.messages.picture import SIZE, LastHour, png
from tailbudget.sinks.messages.words import words

UNTIMED = hypothesis_settings(deadline=None)
"""Machines that run tests are busy."""

MORE = "more in slow requests than in fast ones"
ROOMY = Limits(32_768, either)
MINUTE_NS = 60 * SECOND_NS


def said(draft: Draft, limits: Limits = ROOMY) -> list[str]:
    """Return the lines of a message."""
    return "\n".join(fit(draft, limits)).splitlines()


def test_a_firing_alert_says_all() -> None:
    """What breaks, budget and exhaustion, since when, driver, cohort, cause, what to do, where."""
    assert said(words(BURN)) == [
        "[FIRING page] chat slo:latency burns its error budget",
        "`chat` **slo:latency**: 99 % of requests within 500 ms",
        f"Why: {BURN.reason}",
        "12.3 % of the error budget left, spent at 2026-03-02 12:00:00 UTC at this rate",
        "Since 2026-03-02 10:00:00 UTC",
        f"Tail driver: `retrieve`, 377 ms {MORE} (58 % of the difference)",
        "Worst cohort: `route=search`, 81 % of slow requests and 12 % of all",
        "Probable cause: cache miss (retrieve); hit ratio 20 % in slow requests, 80 % in fast ones",
        "First: warm the cache before a deploy takes traffic",
        "Look at request `chat-7f3a-12`",
        "Details: http://127.0.0.1:6066/services/chat",
        "",
        "```",
        query_text("chat", T0_NS),
        "```",
    ]


def test_a_recovery_says_how_long_and_what_it_cost() -> None:
    """From when, how long, and which part of the budget; not when it was noticed to be over."""
    over = burn(
        state="resolved", before="firing", reason="",
        at_ns=T0_NS + 900 * SECOND_NS, cleared_ns=T0_NS + 858 * SECOND_NS, budget_cost_pct=2.31,
        budget_exhausted_ns=None, tail_driver=None, link="",
    )  # fmt: skip
    assert said(words(over))[:4] == [
        "[RESOLVED] chat slo:latency no longer burns its error budget",
        "`chat` **slo:latency**: 99 % of requests within 500 ms",
        "12.3 % of the error budget left",
        "It lasted 14.3 min, from 2026-03-02 10:00:00 UTC, and cost 2.3 % of the error budget",
    ]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"budget_left_pct": -150.0}, "Error budget spent 2.5 times"),
        (
            {"budget_exhausted_ns": None},
            "12.3 % of the error budget left, which lasts at this rate",
        ),
        ({"budget_corrected_pct": 80.0}, "(without maintenance 80.0 % left)"),
        ({"cause": ""}, "Probable cause: none has evidence yet"),
        ({"state": "no_data"}, "[NO DATA] chat slo:latency cannot be judged"),
        ({"change_reason": "severity_rose"}, "burns its error budget faster"),
        ({"kind": "percentile", "measured_ms": 750.0}, "750 ms, SLO 500 ms (+50.0%)"),
        (
            {"kind": "percentile", "note": "over 30,000 ms (timeout)"},
            "over 30,000 ms (timeout), SLO",
        ),
    ],
)
def test_what_differs_is_said(changes: dict[str, object], line: str) -> None:
    """Each situation has its own words."""
    assert any(line in text for text in said(words(burn(**changes))))


ANOMALY = burn(
    alert="anomaly:model_forward", kind="anomaly", severity="ticket", slo_ms=None, target_pct=None,
    budget_left_pct=None, budget_exhausted_ns=None, effect_pct=31.2, effect_low_pct=27.0,
    effect_high_pct=36.0, effect_ms=14.2, onset_ns=T0_NS + 130 * SECOND_NS, deploy="abc123",
)  # fmt: skip
"""A stage that has become slower."""


def test_an_anomaly_says_how_much_slower_the_same_work_is() -> None:
    """Stage, effect with its interval, since when by the records, and after which deploy."""
    lines = said(words(ANOMALY))
    assert lines[0] == (
        "[FIRING ticket] chat: latency regression in model_forward,"
        " +31 % for the same input shapes, since 10:02:10, after deploy abc123"
    )
    assert lines[1] == (
        "`chat` **anomaly:model_forward**: +31 % for the same input shapes (+27 to +36 %),"
        " 14.2 ms a request, after deploy `abc123`"
    )
    assert "Since 2026-03-02 10:02:10 UTC" in lines
    over = said(words(replace(ANOMALY, state="resolved", at_ns=T0_NS + 730 * SECOND_NS)))
    assert over[0].startswith("[RESOLVED] chat: no longer latency regression in model_forward")
    assert "It lasted 10 min, from 2026-03-02 10:02:10 UTC" in over


def test_a_cold_start_says_that_it_is_one() -> None:
    """What is known of the time after it is said with it, and its end is no breach's."""
    cold = burn(alert="cold_start", kind="cold_start", severity="ticket", target_pct=None,
                measured_ms=900.0, note="steady state is within SLO")  # fmt: skip
    lines = said(words(cold))
    assert lines[0] == "[FIRING ticket] chat: cold start: steady state is within SLO"
    assert lines[1].endswith("900 ms, SLO 500 ms (+80.0%); steady state is within SLO")
    assert said(words(replace(cold, state="resolved")))[0] == "[RESOLVED] chat: cold start is over"


def test_thirty_five_cohorts_are_one_message() -> None:
    """Case 35: within the limit counted after escaping, the worst first, "+N more" for the rest."""
    group = [breach(number) for number in range(35)]
    whole = "\n".join(said(drafted(group)))
    limits = Limits(2000, either)
    title, body = fit(drafted(group), limits)
    assert len(whole) > 5000
    assert either(title) + either(body) <= 2000
    assert title == "[FIRING] chat: 35 alerts"
    items = [line for line in body.splitlines() if line.startswith("• ")]
    assert f"+{35 - len(items)} more" in body.splitlines()
    assert "934 ms" in items[0]
    assert "Tail driver" in body
    assert "Since 2026-03-02 10:00:00 UTC" in body


def test_names_are_set_as_code() -> None:
    """No sign of a name leaves its quotes, and no other quote gets in."""
    for number in range(6):
        line = next(t for t in said(drafted([breach(number), breach(number + 6)])) if "•" in t)
        assert line.count("`") == 2


@pytest.mark.parametrize("name", [*HOSTILE, *(f"{one} @everyone" for one in HOSTILE)])
def test_no_name_leaves_its_line(name: str) -> None:
    """A name with line breaks, escapes or signs of direction adds no line and calls nobody."""
    usual = said(words(BURN))
    odd = said(words(burn(service=name, alert=name, cause=name, worst_cohort=name, reason=name)))
    assert len(odd) == len(usual) - 2 * (not name)  # an empty cause and reason are no lines
    shown = "\n".join(odd[:11])
    assert "@everyone" not in odd[0]
    assert not any(sign in shown for sign in ("\x1b", "\u202e", "\r"))
    assert all(line.count("`") % 2 == 0 for line in odd if line != "```")
    assert odd[-3] == odd[-1] == "```"


texts = st.text(alphabet=st.sampled_from("ab_<&*|🙂`\n."), max_size=60).map(
    lambda text: text.replace("\n", " ")
)
measures = st.sampled_from([units, entities, backslashes, either])


@UNTIMED
@given(
    st.builds(
        Draft,
        texts,
        st.lists(texts, min_size=1, max_size=4).map(tuple),
        st.lists(texts, max_size=40).map(tuple),
        st.lists(texts, max_size=6).map(tuple),
        texts,
    ),
    st.integers(60, 3000),
    measures,
)
def test_everything_fits_everywhere(draft: Draft, characters: int, measure: object) -> None:
    """Title and body stay within the limit, whatever the names and however a channel counts."""
    limits = Limits(characters, measure)  # type: ignore[arg-type]
    title, body = fit(draft, limits)
    assert limits.measure(title) + limits.measure(body) <= characters
    assert limits.measure(shorten(plain(body), limits)) <= characters // 2
    _, whole = fit(draft, Limits(100_000, units))
    assert all(part in whole for part in (*draft.head, *draft.items, *draft.tail, draft.query))


def test_plain_text_has_no_signs_of_ours() -> None:
    """What a channel could not read comes without code marks and bold."""
    assert plain("`chat` **p99**: x\n\n```\nSELECT 1\n```") == "chat p99: x\n\nSELECT 1"


@pytest.mark.parametrize(
    ("url", "characters", "pictures"),
    [
        ("discord://1234567890/abcdefghijklmnop", 2000, True),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7", 35_000, False),
        ("mmost://127.0.0.1/abcdefghijklmnop", 4000, False),
        ("json://127.0.0.1/hook", 32_768, True),
    ],
)
def test_limits_are_those_of_the_channel(url: str, characters: int, *, pictures: bool) -> None:
    """They are Apprise's, and a webhook that takes no file gets none."""
    limits = AppriseChat(ChatChannel(name="x", url=SecretStr(url))).limits
    assert (limits.characters, limits.pictures) == (characters, pictures)


def test_the_picture_shows_line_target_and_incident() -> None:
    """A PNG of one size, with the colours of the line, the target and the incident."""
    at_ns = [T0_NS + minute * MINUTE_NS for minute in range(60)]
    values = [None if minute in (10, 12) else 100.0 + 20 * minute for minute in range(60)]
    hour = LastHour("chat 🙂 p99\n<b>", at_ns, values, 500.0, T0_NS + 30 * MINUTE_NS)
    picture = png(hour)
    assert picture is not None
    image = Image.open(io.BytesIO(picture))
    assert (image.format, image.size) == ("PNG", SIZE)
    colours = {colour for _, colour in image.getcolors(100_000) or ()}
    for wanted in ((9, 105, 218), (207, 34, 46), (255, 235, 233)):
        assert wanted in colours
    assert len(picture) < 50_000
    assert png(replace(hour, value_ms=[None] * 60)) is None

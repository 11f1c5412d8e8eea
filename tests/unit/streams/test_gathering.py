"""Messages of several partitions are decoded at once, and what became of them is told apart."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import orjson
from faust.types import TP
from requests_of import T0_NS

from tailbudget.schemas.records import Decoded
from tailbudget.streams.gathering import BATCH_BYTES, Gathering
from tailbudget.streams.sources import Rules, ServiceRules, decoder

RULES = Rules(default=ServiceRules(cohort_dims=("route",)))
FIRST, SECOND, OTHER = TP("requests", 0), TP("requests", 1), TP("others", 0)


def record(number: int) -> bytes:
    fields = {
        "request_id": f"r{number}",
        "service": f"s{number % 2}",
        "timestamp": T0_NS + number,
        "total_ms": 5.0 + number,
        "route": f"route-{number % 3}",
    }
    return orjson.dumps(fields)


def message(offset: int, *records: bytes) -> SimpleNamespace:
    value = b"\n".join(records)
    return SimpleNamespace(value=value, offset=offset, timestamp=T0_NS // 10**6)


MESSAGES = {
    FIRST: [message(70, record(1), record(2)), message(71, b"no record"), message(75, record(3))],
    SECOND: [message(9, record(4)), message(10, b"", record(5)), message(12, b"[]", record(6))],
}


def told(decoded: Decoded) -> list[str]:
    """Return what a partition is owed: its records and dead letters with their offsets."""
    rows = [
        (c.service, c.offset[i], c.ids[i], c.total_ms[i], c.ts_ns[i], c.cohorts[c.cohort[i]])
        for c in decoded.services
        for i in range(len(c))
    ]
    dead = [(one.offset, one.reason, one.detail, one.raw) for one in decoded.rejected]
    return sorted(repr(one) for one in [*rows, *dead])


def decoded_together(gathering: Gathering) -> dict[TP, Decoded]:
    gathered = gathering.take("requests", T0_NS)
    decoded = decoder("native", RULES).decode(gathered.batch)
    return {share.tp: mine for share, mine in gathered.apart(decoded)}


def test_each_partition_has_what_it_would_have_alone() -> None:
    """Records, dead letters and counts are those of partitions that are decoded one by one."""
    together, alone = Gathering(), dict[TP, Decoded]()
    for tp, messages in MESSAGES.items():
        together.add(tp, messages)
        single = Gathering()
        single.add(tp, messages)
        alone |= decoded_together(single)
    both = decoded_together(together)
    assert {tp: told(mine) for tp, mine in both.items()} == {t: told(m) for t, m in alone.items()}
    ledgers = [sum((Counter(m.ledger) for m in d.values()), Counter()) for d in (both, alone)]
    assert ledgers[0] == ledgers[1]
    assert len(told(both[FIRST])) == 4


def test_a_share_ends_behind_its_last_message() -> None:
    """Offsets may have gaps; what is taken no longer waits."""
    gathering = Gathering()
    for tp, messages in MESSAGES.items():
        gathering.add(tp, messages)
    assert (gathering.end(FIRST), gathering.end(SECOND), gathering.topics) == (76, 13, ["requests"])
    shares = gathering.take("requests", T0_NS).shares
    assert [(s.tp, s.first, s.count, s.end) for s in shares] == [
        (FIRST, 0, 3, 76),
        (SECOND, 3, 3, 13),
    ]
    assert (gathering.end(FIRST), gathering.topics) == (None, [])


def test_topics_fill_batches_of_their_own() -> None:
    """A batch is full by the bytes of all partitions of its topic, and of no other topic."""
    gathering, half = Gathering(), [message(1, b"x" * (BATCH_BYTES // 2))]
    assert [gathering.add(tp, half) for tp in (FIRST, OTHER, SECOND)] == [False, False, True]


def test_a_partition_that_is_lost_is_forgotten() -> None:
    """What waits of it is another worker's."""
    gathering = Gathering()
    for tp, messages in MESSAGES.items():
        gathering.add(tp, messages)
    gathering.forget(FIRST)
    assert [share.tp for share in gathering.take("requests", T0_NS).shares] == [SECOND]


def test_ids_are_looked_up_through_shares() -> None:
    """The ids of a share are its own, one by one and several at once."""
    gathering = Gathering()
    for tp, messages in MESSAGES.items():
        gathering.add(tp, messages)
    columns = decoded_together(gathering)[SECOND].services[0]
    want = [columns.ids[i] for i in range(len(columns))]
    assert want == [f"r{n}" for n in (4, 6)]
    assert columns.ids.gather(np.arange(len(columns))) == want  # type: ignore[attr-defined]

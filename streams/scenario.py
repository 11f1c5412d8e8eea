"""What a simulated inference service is like, and what happens to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Route:
    """Requests of one kind.

    Attributes:
        name: value of the dimension `route`.
        share: of all requests; the shares of all routes add up to 1.
        input_tokens: median length of the input; lengths are lognormal.
        input_spread: standard deviation of the length's logarithm.
        output_tokens: median length of the output, lognormal with spread 0.5.
        documents: median number of documents retrieved; 0 retrieves nothing.
    """

    name: str
    share: float
    input_tokens: float
    input_spread: float
    output_tokens: float
    documents: float = 0.0


@dataclass(frozen=True, slots=True)
class Fault:
    """A stage that becomes slower for a while.

    Attributes:
        stage: name of the stage, without "_ms".
        factor: how many times slower it is.
        after_s: when it begins, counted from the start.
        for_s: how long it lasts.
    """

    stage: str
    factor: float
    after_s: float
    for_s: float


@dataclass(frozen=True, slots=True)
class Deploy:
    """A new version; half of the requests meet a cold replica for a while.

    Attributes:
        version: what is deployed.
        after_s: when, counted from the start.
        slowdown: how many times slower prefill and decode are on a cold replica at first, less 1.
        warm_s: time constant of warming up.
    """

    version: str
    after_s: float
    slowdown: float = 1.0
    warm_s: float = 5.0


ROUTES: Final = (
    Route("chat", 0.50, 350, 0.9, 24),
    Route("search", 0.30, 900, 0.6, 16, documents=6),
    Route("summarise", 0.15, 1800, 0.8, 32),
    Route("agent", 0.05, 1200, 1.0, 28, documents=4),
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A simulated service; all that it does follows from these values alone.

    Attributes:
        service: its name.
        seed: of all randomness.
        rate: requests a second, on average; the load swings by a quarter in five minutes.
        routes: kinds of requests.
        variants: (model variant, share, relative time of prefill and decode).
        regions: (region, share, median milliseconds of the network, which is no stage).
        tiers: (customer tier, share).
        faults: what becomes slow.
        deploys: new versions.
        failure_pct: requests that fail without cause, per cent.
        timeout_ms: the callers' limit.
        env: the environment that deploys name.
    """

    service: str = "chat"
    seed: int = 1
    rate: float = 200.0
    routes: tuple[Route, ...] = ROUTES
    variants: tuple[tuple[str, float, float], ...] = (("small", 0.7, 0.8), ("large", 0.3, 1.3))
    regions: tuple[tuple[str, float, float], ...] = (
        ("eu", 0.5, 4.0),
        ("us", 0.4, 6.0),
        ("ap", 0.1, 18.0),
    )
    tiers: tuple[tuple[str, float], ...] = (("free", 0.6), ("pro", 0.4))
    faults: tuple[Fault, ...] = ()
    deploys: tuple[Deploy, ...] = ()
    failure_pct: float = 0.5
    timeout_ms: float = 10_000.0
    env: str = "prod"

    def happenings(self, t0_s: float, t1_s: float) -> tuple[str, ...]:
        """Say for a person what happens from `t0_s` up to `t1_s`, in order of time."""
        events = [(deploy.after_s, f"deploy of {deploy.version}") for deploy in self.deploys]
        for fault in self.faults:
            what = f"{fault.stage} becomes {fault.factor:g} times slower"
            events.append((fault.after_s, what))
            events.append((fault.after_s + fault.for_s, f"{fault.stage} is itself again"))
        return tuple(text for at_s, text in sorted(events) if t0_s <= at_s < t1_s)


def demonstration(
    *,
    service: str = "chat",
    seed: int = 1,
    rate: float = 200.0,
    fault_after_s: float = 60.0,
    fault_for_s: float = 40.0,
) -> Scenario:
    """Return the scenario of `tailbudget up`: a deploy, then a fault that starts and ends."""
    return Scenario(
        service=service,
        seed=seed,
        rate=rate,
        faults=(Fault("retrieve", 12.0, fault_after_s, fault_for_s),),
        deploys=(Deploy("v2", fault_after_s / 3),),
    )

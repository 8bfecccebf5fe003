"""Messages over a network with no pipeline around them, and links that move as a test says."""

import dataclasses
import math
from collections.abc import Generator, Sequence
from functools import cache
from typing import NamedTuple

import simpy
from hypothesis import strategies as st
from strategies import world

from des import NO_CORRECTIONS, Corrections, Movement, Topology, Transfer
from des.clock import Clock, Message
from des.dynamics import Extremes, LinkFigures, Piece
from des.engine.network import Network, Parcel
from des.engine.result import LinkUse
from des.world.transport import Transport


class Sent(NamedTuple):
    """A message that is ready at a time; its sender is a GPU of some domain."""

    ready_s: float
    num_bytes: float
    route: tuple[int, ...] = (0,)
    sender: int = 0


class Delivery(NamedTuple):
    """What became of the messages: arrivals in the order given, hops by message, links."""

    arrivals_s: list[float]
    hops: list[list[Transfer]]
    links: tuple[LinkUse, ...]

    def ends_s(self) -> list[float]:
        """When the last byte of each message has left its last link."""
        return [hops[-1].end_s for hops in self.hops]


def deliver(
    topology: Topology, messages: Sequence[Sent], corrections: Corrections = NO_CORRECTIONS
) -> Delivery:
    """Send messages as they become ready, those ready at the same time in the order given."""
    clock = Clock()
    network = Network(clock, topology, corrections)
    arrivals = [Message(clock, index, index) for index in range(len(messages))]
    arrivals_s = [math.nan] * len(messages)

    def note(message: simpy.Event) -> None:
        arrivals_s[message.microbatch] = clock.now

    def feed() -> Generator[simpy.Event, None, None]:
        for index in sorted(range(len(messages)), key=lambda index: messages[index].ready_s):
            one = messages[index]
            yield clock.at(one.ready_s)
            arrivals[index].callbacks.append(note)
            send = network.way(Parcel(one.num_bytes, one.route, 0, "F", one.sender))
            send(arrivals[index], one.ready_s)

    clock.process(feed())
    clock.run_out()
    assert all(message.processed for message in arrivals)
    hops: list[list[Transfer]] = [[] for _ in messages]
    for transfer in sorted(network.transfers(), key=lambda transfer: transfer.start_s):
        hops[transfer.microbatch].append(transfer)
    return Delivery(arrivals_s, hops, network.link_uses())


@dataclasses.dataclass(frozen=True)
class Steps:
    """A law that a test writes down: from when which factors rule, the first from time 0."""

    steps: tuple[tuple[float, float, float], ...]
    """Start, bandwidth factor, latency factor; the last rules for ever."""
    only_link: int | None = None
    """The other links stand still; None moves them all."""

    def check_links(self, links: Sequence[LinkFigures]) -> None:
        """Any links will do."""

    def extremes(self, link: LinkFigures) -> Extremes:
        """Bounds of the factors."""
        bandwidths, latencies = [step[1] for step in self.steps], [step[2] for step in self.steps]
        return Extremes(min(bandwidths), max(bandwidths), min(latencies), max(latencies))

    def path(self, links: Sequence[LinkFigures], seed: int) -> "Steps":
        """There is nothing to draw."""
        return self

    def piece_at(self, link: int, time_s: float) -> Piece:
        """Step that rules at a time."""
        if self.only_link not in (None, link):
            return Piece(0.0, math.inf, 1.0, 1.0)
        last = max(index for index, step in enumerate(self.steps) if step[0] <= time_s)
        later = self.steps[last + 1 : last + 2]
        return Piece(self.steps[last][0], later[0][0] if later else math.inf, *self.steps[last][1:])


def moving(topology: Topology, *steps: tuple[float, float, float], link: int | None = None):
    """Let the links (or one) follow steps of (start, bandwidth factor, latency factor)."""
    law = Steps(steps=((0.0, 1.0, 1.0), *steps), only_link=link)
    return dataclasses.replace(topology, movement=Movement(law=law, seed=0))


def with_transport(topology: Topology, **rules: object) -> Topology:
    """Let messages share the links by these rules; the domains get GPUs for 8 endpoint pairs."""
    domains = tuple(dataclasses.replace(domain, num_gpus=8) for domain in topology.domains)
    return dataclasses.replace(topology, domains=domains, transport=Transport(**rules))


def pair(forth: tuple[float, float], back: tuple[float, float], **rules: object) -> Topology:
    """Two domains; link 0 leads forth, link 1 back, each of (bytes per second, latency)."""
    return with_transport(world("AB", {"AB": forth, "BA": back}), **rules)


@cache
@st.composite
def courses(draw: st.DrawFn) -> tuple[tuple[float, float, float], ...]:
    """Steps for `moving`: links slow down, speed up and fail, but come back at last."""
    gaps_s = draw(st.lists(st.floats(0.01, 5.0), max_size=5))
    starts_s = [sum(gaps_s[: index + 1]) for index in range(len(gaps_s))]
    factor = st.floats(0.1, 3.0)
    steps = [(start_s, draw(st.just(0.0) | factor), draw(factor)) for start_s in starts_s]
    return (*steps, (sum(gaps_s) + 1.0, draw(factor), draw(factor)))


def sent(*routes: tuple[int, ...], max_size: int = 8) -> st.SearchStrategy[list[Sent]]:
    """Messages of up to 50 bytes over some of the routes within 10 s, many at the same time."""
    return st.lists(
        st.builds(
            Sent,
            ready_s=st.integers(0, 10).map(float) | st.floats(0.0, 10.0),
            num_bytes=st.floats(0.0, 50.0),
            route=st.sampled_from(routes or ((0,),)),
            sender=st.integers(0, 2),
        ),
        min_size=1,
        max_size=max_size,
    )


SHARINGS = ("fifo", "fair", "none")

_FEW_FLOWS = st.integers(1, 4)
_WINDOWS_BYTES = st.none() | st.floats(1e7, 1e9)


@cache
@st.composite
def transports(
    draw: st.DrawFn,
    *,
    sharings: Sequence[str] = SHARINGS,
    flows_per_pair: st.SearchStrategy[int] = _FEW_FLOWS,
    window_bytes: st.SearchStrategy[float | None] = _WINDOWS_BYTES,
) -> Transport:
    """Any rules with one endpoint pair a message, as a domain may have a single GPU."""
    sharing = draw(st.sampled_from(sharings))
    return Transport(
        sharing=sharing,
        endpoints=draw(st.sampled_from(["overlapped", "one_in_flight", "blocking"])),
        half_duplex=draw(st.booleans()) if sharing != "none" else False,
        flows_per_pair=draw(flows_per_pair),
        window_bytes=draw(window_bytes),
    )

"""The child with ns-3: bad input before it, limits, interruption and its end."""

import math
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from strategies import world
from test_recorded_flows import process

from calibration.packet.links import PacketLinks
from calibration.packet.process import PacketProcess
from calibration.reference.binaries import ReferenceRunError
from des import Topology, UniformLaw
from des.dynamics.link_course import StarvationError
from des.dynamics.replay import LinkSeries, Replay
from des.world.packet_transport import PacketTransport

__all__ = ["process"]

RATE, LATENCY_S = 1.25e8, 0.02
ENDS = {"AB": (RATE, LATENCY_S), "BA": (RATE, LATENCY_S)}
PAIR = world("AB", ENDS)
HOURS_BYTES = 2.0**42
"""A message too large for ns-3 to end within a test. [bytes]"""


def down_from(time_s: float) -> Topology:
    series = tuple(
        LinkSeries(
            source=source,
            target=target,
            times_s=(0.0, time_s),
            bandwidths_bytes_per_s=(RATE, 0.0),
            latencies_s=(LATENCY_S, LATENCY_S),
        )
        for source, target in ENDS
    )
    law = Replay(name="down", series=series, holds_last=True)
    fresh = PacketTransport(congestion="cubic", connections="fresh")
    topology = world("AB", ENDS, dynamics=law)
    return replace(topology, transport=replace(topology.transport, packets=fresh)).epoch_of(0)


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_link_that_is_down_for_ever_is_named_as_the_cause(process):
    links = PacketLinks(down_from(0.5), process)
    links.send(0, 0, 1, 1e9, 0.0)

    with pytest.raises(StarvationError, match="a link on its way is down for ever"):
        links.advance(math.inf)


def test_a_law_that_moves_latencies_is_refused_by_the_name_of_the_link(process):
    law = UniformLaw(bandwidth_fluctuation=0.0, latency_jitter=0.2, update_interval_s=1.0)
    moving = world("AB", ENDS, dynamics=law).epoch_of(0)

    with pytest.raises(ValueError, match=r"latencies must stand still.*link A->B by a factor of"):
        PacketLinks(moving, process)


def test_a_child_beyond_its_limit_is_ended(process):
    own = PacketProcess()
    links = PacketLinks(PAIR, own)
    links.send(0, 0, 1, HOURS_BYTES, 0.0)
    own.limit_s = 0.05

    with pytest.raises(ReferenceRunError, match=r"advance took longer than its limit of 0\.05 s"):
        links.advance(math.inf)

    assert not own.is_alive
    assert not is_running(own._child.pid)


def interrupted_when_busy(pid: int, cpu_s: float, own: PacketProcess) -> None:
    """Send Ctrl-C to this process as soon as the child works."""
    while own.cpu_s <= cpu_s:
        pass
    os.kill(pid, signal.SIGINT)


def test_an_interruption_leaves_no_child_behind(process):
    own = PacketProcess()
    links = PacketLinks(PAIR, own)
    links.send(0, 0, 1, HOURS_BYTES, 0.0)
    sender = threading.Thread(
        target=interrupted_when_busy, args=(os.getpid(), own.cpu_s + 0.05, own)
    )
    sender.start()

    with pytest.raises(KeyboardInterrupt):
        links.advance(math.inf)

    sender.join()
    assert not own.is_alive
    assert not is_running(own._child.pid)


def test_a_child_that_cannot_start_says_why(process, monkeypatch):
    """Libraries of another version than the one installed: what the child printed is shown."""
    monkeypatch.setattr("calibration.packet.process.ns3_version", lambda: "9.99")

    with pytest.raises(ReferenceRunError, match=r"(?s)ended with 1 during start: .*libns9\.99"):
        PacketProcess()


def test_no_compiler_is_needed_after_the_installation(process, monkeypatch, tmp_path):
    """A child whose path has no programs at all loads the facade and gives the same times."""
    monkeypatch.setenv("PATH", str(tmp_path))
    own = PacketProcess()
    arrivals = []
    for each in (process, own):
        links = PacketLinks(PAIR, each)
        links.send(0, 0, 1, 1e7, 0.0)
        arrivals.append(links.advance(math.inf))
    own.close()

    assert arrivals[0] == arrivals[1]

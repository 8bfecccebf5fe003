"""Process that holds ns-3: it takes numbers from the process that started it, and answers numbers.

Run as ``python -m calibration.packet.child FD`` by `calibration.packet.process`. ns-3 has one clock
for each process and ends the process on errors, so it lives in one of its own.
"""

import os
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from calibration.packet.requests import Request
from des.base.parent_process import be_killed_with

LIBRARIES = (
    "core",
    "network",
    "stats",
    "bridge",
    "traffic-control",
    "internet",
    "point-to-point",
)
"""Libraries of ns-3 that the facade needs, each after those that it needs itself."""

SEED = 1


def load_facade(version: str) -> Any:
    """Load the libraries and compile the facade; returns its C++ namespace."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cppyy looks for headers that only extensions need
        cppyy: Any = import_module("cppyy")  # of the extra, which others do without

    spec = find_spec("ns3")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    root = Path(next(iter(spec.submodule_search_locations)))
    cppyy.add_include_path(str(root / "include"))
    cppyy.add_include_path(str(Path(__file__).parent))
    for library in LIBRARIES:
        cppyy.load_library(str(root / "lib64" / f"libns{version}-{library}.so"))
    cppyy.include("facade.h")
    return cppyy.gbl.eastwest


class Simulations:
    """The simulation that is under way, and the requests about it."""

    def __init__(self, facade: Any) -> None:
        self._facade = facade
        self._network: Any = None

    def open(self, request: Request) -> tuple[int, ...]:
        """Begin a network; the one before it ends."""
        facade = self._facade
        self._network = None  # ns-3 ends the one before first
        num_hosts, run, transport, joints, routes, windows = request
        network = facade.PacketNetwork(num_hosts, facade.Transport(*transport), SEED, run)
        for first, second, *joint in joints:
            network.AddLink(first, second, facade.Joint(*joint))
        for route in routes:
            network.AddRoute(*route)
        for window in windows:
            network.SetWindow(*window)
        self._network = network
        return ()

    def send(self, request: Request) -> tuple[int, ...]:
        """Hand a message over."""
        self._network.Send(*request)
        return ()

    def change(self, request: Request) -> tuple[int, ...]:
        """Give one direction of a joint another rate, or take it down or up, at a time."""
        joint, direction, time_ns, rate_bits_per_s = request
        self._network.ChangeRate(joint, direction, time_ns, rate_bits_per_s)
        return ()

    def advance(self, request: Request) -> tuple[int, ...]:
        """Run to a time at most; answers the time, the number of events so far, and arrivals."""
        network = self._network
        reached_ns = network.Advance(request[0])
        arrived = [network.Arrived(place) for place in range(network.NumArrived())]
        return (reached_ns, network.NumEvents(), network.NumDrops(), *arrived)


def answer_requests(connection: Connection, version: str) -> None:
    """Answer requests until the other side closes the connection."""
    simulations = Simulations(load_facade(version))
    tasks: dict[str, Callable[[Request], tuple[int, ...]]] = {
        "open": simulations.open,
        "send": simulations.send,
        "change": simulations.change,
        "advance": simulations.advance,
    }
    connection.send(())
    while True:
        try:
            requests = connection.recv()
        except EOFError:
            return
        answer: tuple[int, ...] = ()
        for name, request in requests:
            answer = tasks[name](request)
        connection.send(answer)


if __name__ == "__main__":
    be_killed_with(os.getppid())
    answer_requests(Connection(int(sys.argv[1])), sys.argv[2])

"""Emulated links: a network namespace a site, joined by a relay that holds rates and latencies."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file
from importlib.resources import files as resources
from pathlib import Path

from des import Topology
from des.base.command import UsageError
from des.base.speaking import SPEAKER

DEVICE = "wan0"
"""Network device of a site."""

_PACKET_SHARE = 1500.0 / 1448.0
"""Bytes of a packet over those of its payload; the bandwidth of a link is that of payload."""
_LEAST_QUEUE_BYTES = 64 * 1500
_TUN = Path("/dev/net/tun")
_PROGRAMS = ("cc", "chrt", "setpriv")
_REAL_TIME = ("chrt", "--rr", "1")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedSites:
    """Sites of a running relay, by their number: namespaces."""

    relay: int
    spaces: tuple[int, ...]

    def space(self, site: int) -> str:
        """File of the network namespace of a site."""
        return f"/proc/{self.relay}/fd/{self.spaces[site]}"


def require_emulation() -> None:
    """Refuse a machine that cannot emulate links.

    Raises
    ------
    UsageError
        Naming what is missing.
    """
    if os.geteuid() != 0:
        raise UsageError("rehearse: must run as root, which makes network namespaces; got a user")
    if not os.access(_TUN, os.R_OK | os.W_OK):
        raise UsageError(f"rehearse: needs {_TUN} for emulated links, got none")
    for program in _PROGRAMS:
        if shutil.which(program) is None:
            raise UsageError(f"rehearse: needs the program {program}, got none in PATH")


def undisturbed() -> tuple[str, ...]:
    """Beginning of a command whose process other work on the machine does not hold up.

    Empty, with a note, where the kernel gives a container no real time.
    """
    tried = subprocess.run([*_REAL_TIME, "true"], capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        return _REAL_TIME
    SPEAKER.note([f"ranks and links wait for other work on the machine: {tried.stderr.strip()}"])
    return ()


@contextmanager
def emulated_sites(topology: Topology, *, is_tuned: bool) -> Iterator[EmulatedSites]:
    """Join namespaces, one a domain, by the links of a world; all is gone at the end.

    Namespaces have no names: they vanish with the relay and the processes in them.

    Raises
    ------
    UsageError
        If the kernel does not allow it; with the relay's own words.
    """
    program = _compiled()
    try:
        relay = subprocess.Popen(
            [*undisturbed(), f"/proc/self/fd/{program}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=(program,),
        )
    finally:
        os.close(program)
    assert relay.stdin is not None
    assert relay.stdout is not None
    assert relay.stderr is not None
    with relay:
        try:
            relay.stdin.write(_words(topology, is_tuned=is_tuned))
            relay.stdin.flush()
            spaces = tuple(map(int, relay.stdout.readline().split()))
            if not spaces:
                raise UsageError(f"rehearse: links cannot be emulated: {relay.stderr.read()}")
            yield EmulatedSites(relay=relay.pid, spaces=spaces)
        finally:
            relay.kill()


def _compiled() -> int:
    """File descriptor of the relay's program, which is in memory alone."""
    found = os.memfd_create("relay", 0)
    with as_file(resources("scenarios.rehearse") / "scripts" / "relay.c") as source:
        made = subprocess.run(
            ["cc", "-O2", "-o", "/dev/stdout", str(source)],
            stdout=found,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    if made.returncode:
        os.close(found)
        raise UsageError(f"rehearse: the relay cannot be compiled: {made.stderr}")
    return found


def _words(topology: Topology, *, is_tuned: bool) -> str:
    """Rates, latencies and queues of links, and the path of each pair, as the relay reads them."""
    count, queues = topology.num_domains, 2.0 if is_tuned else 1.0
    lines = [f"{count} {len(topology.links)} {int(is_tuned)}"]
    for link in topology.links:
        rate = link.bandwidth_bytes_per_s * _PACKET_SHARE
        queue_bytes = max(_LEAST_QUEUE_BYTES, queues * rate * 2.0 * link.latency_s)
        lines.append(f"{8.0 * rate:.0f} {link.latency_s:.9f} {queue_bytes:.0f}")
    for source in range(count):
        for target in range(count):
            path = () if source == target else topology.route(source, target)
            lines.append(" ".join(map(str, (len(path), *path))))
    return "\n".join(lines) + "\n"

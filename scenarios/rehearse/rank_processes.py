"""Processes of the ranks of a rehearsal: started in their sites, stepped together, and ended."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, Queue
from typing import IO, Any

from des.base.strict_json import parse_json
from scenarios.rehearse.emulated_links import DEVICE, EmulatedSites, undisturbed
from scenarios.rehearse.seats import Seat

_LEAD_S = 0.05
"""Time between telling all ranks the start of a step, and that start."""


class RankFailedError(ValueError):
    """A rank ended before its work was done, or said nothing for too long."""


class RankProcesses:
    """Running ranks, and the lines that they say: documents, or text that is kept for errors."""

    def __init__(self, sites: Sequence[str]) -> None:
        self._sites = sites
        self._lines: Queue[tuple[int, str]] = Queue()
        self._inputs: list[IO[str]] = []
        self._last: dict[int, str] = {}

    def add(self, stdin: int, stdout: int) -> None:
        """Add the streams of one more rank; what it says is read on a thread."""
        rank = len(self._inputs)
        self._inputs.append(os.fdopen(stdin, "w", encoding="utf-8"))
        threading.Thread(target=self._read, args=(rank, stdout), daemon=True).start()

    def _read(self, rank: int, stdout: int) -> None:
        with open(stdout, encoding="utf-8") as said:
            for line in said:
                self._lines.put((rank, line.strip()))
        self._lines.put((rank, ""))

    def documents(self, limit_s: float) -> list[dict[str, Any]]:
        """Return the next document of each rank.

        Raises
        ------
        RankFailedError
            If one ends, with its last line, or does not answer in time.
        """
        found: dict[int, dict[str, Any]] = {}
        end_s = time.monotonic() + limit_s
        while len(found) < len(self._inputs):
            try:
                rank, line = self._lines.get(timeout=max(0.0, end_s - time.monotonic()))
            except Empty:
                ranks = range(len(self._inputs))
                silent = [self._name(one) for one in ranks if one not in found]
                raise RankFailedError(
                    f"rehearse: no answer within {limit_s:.0f} s from {', '.join(silent)}"
                ) from None
            if line.startswith("{"):
                document: Any = parse_json(line)
                found.setdefault(rank, document)
            elif line:
                self._last[rank] = line
            elif rank not in found:
                said = self._last.get(rank, "nothing")
                raise RankFailedError(
                    f"rehearse: {self._name(rank)} ended early; it said last: {said}"
                )
        return [found[rank] for rank in range(len(self._inputs))]

    def close(self) -> None:
        """Close the inputs of all ranks."""
        for stream in self._inputs:
            with suppress(BrokenPipeError):
                stream.close()

    def _name(self, rank: int) -> str:
        return f"rank {rank} in {self._sites[rank]}"

    def step(self, limit_s: float) -> list[dict[str, Any]]:
        """Let all ranks do a step from a common start; their records."""
        start = f"{time.monotonic() + _LEAD_S!r}\n"
        for rank, stream in enumerate(self._inputs):
            try:
                stream.write(start)
                stream.flush()
            except BrokenPipeError:
                self.documents(limit_s)
                raise RankFailedError(f"rehearse: {self._name(rank)} ended early") from None
        return self.documents(limit_s)


@contextmanager
def rank_processes(
    emulated: EmulatedSites, domains: Sequence[int], names: Sequence[str], flags: Sequence[str]
) -> Iterator[RankProcesses]:
    """Start a rank in each of some domains; none is left at the end.

    Parameters
    ----------
    domains
        Domain of each rank.
    names
        Names of the domains of the ranks.
    flags
        Arguments of all ranks.
    """
    environment = os.environ | {"GLOO_SOCKET_IFNAME": DEVICE, "OMP_NUM_THREADS": "1"}
    meeting = os.memfd_create("store", 0)  # in memory: over links ranks would take minutes to meet
    store = f"file:///proc/self/fd/{meeting}"
    ranks, seats, theirs = RankProcesses(names), [], [meeting]
    for rank, domain in enumerate(domains):
        (stdin, to_rank), (from_rank, stdout) = os.pipe(), os.pipe()
        ranks.add(to_rank, from_rank)
        own = [*flags, "--rank", str(rank), "--store", store]
        seats.append(Seat(emulated.space(domain), stdin, stdout, own))
        theirs += [stdin, stdout]
    module = [sys.executable, "-m", "scenarios.rehearse.forked_ranks", json.dumps(seats)]
    command = [*undisturbed(), "setpriv", "--pdeathsig", "KILL", *module]
    running = subprocess.Popen(command, env=environment, pass_fds=theirs)
    for stream in theirs:
        os.close(stream)
    try:
        yield ranks
    finally:
        running.kill()
        running.wait()
        ranks.close()

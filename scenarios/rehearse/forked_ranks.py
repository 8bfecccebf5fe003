"""Ranks of a rehearsal, forked from one process that has loaded torch once.

``python -m scenarios.rehearse.forked_ranks SEATS``: a list of `Seat` in JSON.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from des.base.strict_json import parse_json
from scenarios.rehearse import worker
from scenarios.rehearse.seats import Seat

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Fork a process for each seat, and wait until all have ended."""
    words = sys.argv[1:] if argv is None else argv
    content: Any = parse_json(words[0])
    seats = [Seat(*one) for one in content]
    ranks = []
    for seat in seats:
        ranks.append(os.fork())
        if ranks[-1] == 0:
            return _take(seat, seats)
    for seat in seats:
        os.close(seat.stdin)
        os.close(seat.stdout)
    return max(os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1]) != 0 for rank in ranks)


def _take(seat: Seat, seats: Sequence[Seat]) -> int:
    """Be a rank until it ends; dies with the process that forked it."""
    kernel = ctypes.CDLL(None, use_errno=True)
    kernel.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if seat.space:
        space = os.open(seat.space, os.O_RDONLY)
        if kernel.setns(space, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"{seat.space}: cannot be entered")
        os.close(space)
    os.dup2(seat.stdin, 0)
    os.dup2(seat.stdout, 1)
    os.dup2(1, 2)
    for one in seats:
        os.close(one.stdin)
        os.close(one.stdout)
    return worker.main(seat.flags)


if __name__ == "__main__":
    raise SystemExit(main())

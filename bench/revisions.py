"""Speed of compiled code against another revision: ``python -m bench.revisions CHECKOUT``.

Rounds of one process each of both checkouts, on the same processor; within a round they take turns
call by call, so that both meet the same load of the machine. The ratio of a round is the median
over its turns, and the interval is Student's over the rounds, of logarithms.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rich.console import Console

from bench.report import PAGE, ROOT, Section, Table, column, show, split_page, write
from bench.timing import FULL, QUICK
from scenarios.frame.statistics import mean_and_interval

CASES = Path(__file__).with_name("revision_cases.py")
NUM_TURNS, TURN_S = 10, 0.03

Turns = dict[str, list[tuple[float, float]]]
"""CPU seconds of an item of the other checkout and of this one, turn by turn, by case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioRow:
    """One case in both revisions."""

    case: str = column("compiled code, stages and microbatches, links")
    before_per_s: float = column("before [/s]", ",.0f")
    now_per_s: float = column("now [/s]", ",.0f")
    ratio: float = column("ratio", ".3f")
    low: float = column("from", ".3f")
    high: float = column("to", ".3f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A process that times the cases of a checkout; ``call_s`` are CPU seconds of a call."""

    call_s: dict[str, float]
    questions: IO[str]
    answers: IO[str]

    def item_s(self, case: str, num_calls: int) -> float:
        """CPU time of an item over a number of calls. [s]"""
        print(case, num_calls, sep="\t", file=self.questions, flush=True)
        return float(self.answers.readline())


@contextmanager
def timed(checkout: Path, *, is_quick: bool) -> Iterator[Timed]:
    """Start a process on the modules of a checkout, with one thread on one processor.

    Raises
    ------
    RuntimeError
        If the process cannot run the cases; what it says is on stderr.
    """
    paths = os.pathsep.join(str(path) for path in (checkout, checkout / "astra-sim"))
    threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command = [sys.executable, "-P", str(CASES), *(["--quick"] if is_quick else [])]
    with subprocess.Popen(
        command,
        cwd=checkout,
        env={**os.environ, **threads, "PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        first = process.stdout.readline()
        if not first:
            raise RuntimeError(f"bench: {checkout} cannot run {CASES.name}")
        yield Timed(call_s=json.loads(first), questions=process.stdin, answers=process.stdout)
        process.stdin.close()


def play_round(before: Timed, now: Timed, *, is_quick: bool) -> Turns:
    """Let both take turns at every case, now the one first and now the other."""
    found: Turns = {}
    for case, before_s in before.call_s.items():
        turn_s = 0.0 if is_quick else TURN_S
        num_calls = max(1, math.ceil(turn_s / min(before_s, now.call_s[case])))
        for turn in range(NUM_TURNS):
            pair = (before, now) if turn % 2 == 0 else (now, before)
            times_s = [one.item_s(case, num_calls) for one in pair]
            found.setdefault(case, []).append((times_s[turn % 2], times_s[1 - turn % 2]))
    return found


def rows_of(rounds: Sequence[Turns]) -> list[RatioRow]:
    """Sum up rounds: rates of the fastest turns, ratios of speeds now and before."""
    rows = []
    for case in rounds[0]:
        logs = [statistics.median(math.log(b / n) for b, n in turns[case]) for turns in rounds]
        mean = mean_and_interval(logs)
        before, now = (
            statistics.median(1.0 / min(turn[side] for turn in turns[case]) for turns in rounds)
            for side in (0, 1)
        )
        rows.append(
            RatioRow(
                case=case,
                before_per_s=before,
                now_per_s=now,
                ratio=math.exp(mean.mean),
                low=math.exp(mean.low),
                high=math.exp(mean.high),
            )
        )
    return rows


def revision_of(checkout: Path) -> str:
    """Short name of the commit that a checkout is at."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=7"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def measure(other: Path, *, num_rounds: int, is_quick: bool) -> Section:
    """Time the compiled code of another checkout and of this one."""
    rounds, names = [], [revision_of(other), revision_of(ROOT)]
    for _ in range(num_rounds):
        with timed(other, is_quick=is_quick) as before, timed(ROOT, is_quick=is_quick) as now:
            rounds.append(play_round(before, now, is_quick=is_quick))
    table = Table(title="Compiled code, before and now", rows=rows_of(rounds), in_page=False)
    return Section(
        name="revisions",
        tables=[table],
        notes=[f"Before: {names[0]}. Now: {names[1]}. {num_rounds} rounds."],
        command="python -m bench.revisions CHECKOUT",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and, with ``--write``, write into the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.revisions", description=__doc__)
    parser.add_argument("checkout", type=Path, help="folder of the other revision")
    parser.add_argument(
        "--rounds", type=int, default=FULL.num_rounds, help="(default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="a trial; its figures mean nothing")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    arguments = parser.parse_args(argv)
    if arguments.rounds < 2:
        parser.error(f"--rounds must be at least 2, got {arguments.rounds}")
    if not (arguments.checkout / "bench" / "batches.py").is_file():
        parser.error(f"CHECKOUT must be a folder that holds bench, got {arguments.checkout}")
    if arguments.write:
        split_page(PAGE, "revisions")
    num_rounds = QUICK.num_rounds if arguments.quick else arguments.rounds
    checkout = arguments.checkout.resolve()
    section = measure(checkout, num_rounds=num_rounds, is_quick=arguments.quick)
    show(section, Console(width=None if Console().is_terminal else 120))
    if arguments.write:
        write(section, PAGE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

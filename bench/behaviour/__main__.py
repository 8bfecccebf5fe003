"""Hashes of what the commands give: ``--out FILE`` writes them, ``--against FILE`` compares them.

Exit codes: 0 done, or nothing differs; 1 something differs; 2 bad input.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench.behaviour.cases import GROUPS, NEED_GOLDEN, batches_of
from bench.behaviour.comparison import Digests, differences, of_groups, read, write
from bench.behaviour.running import Outcome, run_all

BASELINE = Path(__file__).with_name("baseline.json")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cases, write their digests, and compare them."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.out is None and arguments.against is None:
        parser.error("--out or --against must be given")
    try:
        groups = _groups(arguments.only)
        before = None if arguments.against is None else read(arguments.against)
        if arguments.results is None:
            golden = None if arguments.golden is None else arguments.golden.resolve()
            groups, after = _measured(groups, golden, arguments.keep, arguments.workers)
        else:
            after = of_groups(read(arguments.results), set(groups))
    except ValueError as error:
        parser.error(str(error))
    if arguments.out is not None:
        write(after, arguments.out)
        print(f"written: {arguments.out}")
    return 0 if before is None else _compare(of_groups(before, set(groups)), after)


def _groups(only: str | None) -> list[str]:
    names = list(GROUPS) if only is None else only.split(",")
    for name in names:
        if name not in GROUPS:
            raise ValueError(f"--only: must be some of {', '.join(GROUPS)}; got {name!r}")
    return names


def _measured(
    groups: list[str], golden: Path | None, keep: Path | None, num_workers: int
) -> tuple[list[str], Digests]:
    """Run the groups that can be run; return their names and digests."""
    for name in groups:
        if golden is None and name in NEED_GOLDEN:
            print(f"{name}: skipped, as it needs --golden FOLDER")
    runnable = [name for name in groups if golden is not None or name not in NEED_GOLDEN]
    wall_s: dict[str, float] = defaultdict(float)

    def tell(outcome: Outcome) -> None:
        wall_s[outcome.case.group] += outcome.wall_s
        print(f"{outcome.case.name}  {outcome.wall_s:.1f} s", flush=True)

    begin_s = time.perf_counter()
    outcomes = run_all(batches_of(groups, golden), golden, keep, num_workers, tell)
    for name, seconds in wall_s.items():
        print(f"{name}: commands took {seconds:.0f} s")
    print(f"{len(outcomes)} cases in {time.perf_counter() - begin_s:.0f} s")
    return runnable, {outcome.case.name: outcome.digests for outcome in outcomes}


def _compare(before: Digests, after: Digests) -> int:
    found = differences(before, after)
    for case, lines in found.items():
        for line in lines:
            print(f"{case}/{line}")
    print(f"{len(found)} of {len({*before, *after})} cases differ")
    return 1 if found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.behaviour",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file of hashes to write")
    parser.add_argument(
        "--against",
        type=Path,
        nargs="?",
        const=BASELINE,
        metavar="FILE",
        help=f"earlier file to compare with (default: {BASELINE.name} of this package)",
    )
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="take hashes from this file; run nothing"
    )
    parser.add_argument(
        "--only", metavar="GROUP,...", help=f"groups of {', '.join(GROUPS)} (default: all)"
    )
    parser.add_argument(
        "--golden",
        type=Path,
        metavar="FOLDER",
        help="recorded figures: folders astra, published and sailor; without it "
        f"{' and '.join(sorted(NEED_GOLDEN))} are skipped",
    )
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep the normalised outputs, for diff -r"
    )
    parser.add_argument(
        "--workers", type=int, default=2, choices=(1, 2), help="commands at a time (default: 2)"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())

"""Speed of every part: ``python -m bench``, or ``make bench``.

Medians of seven rounds in which the contestants take turns, after a first call each that is not
counted: it compiles and fills caches. Figures are per second of the wall clock and per second of
CPU time, all threads of the process together; ratios are of CPU times within a round.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from bench import (
    astra,
    bound_plans,
    convergence,
    devices,
    environment,
    explorer,
    growth,
    k8s,
    layer_times,
    learning,
    planners,
    scheduling,
    simulation,
)
from bench.report import PAGE, Section, machine, show, split_page, write
from bench.timing import FULL, QUICK, Effort

PARTS: dict[str, Callable[[Effort], Section]] = {
    "simulation": simulation.measure,
    "layer_times": layer_times.measure,
    "growth": growth.measure,
    "environment": environment.measure,
    "scheduling": scheduling.measure,
    "learning": learning.measure,
    "convergence": convergence.measure,
    "planners": planners.measure,
    "bound_plans": bound_plans.measure,
    "devices": devices.measure,
    "k8s": k8s.measure,
    "astra": astra.measure,
    "explorer": explorer.measure,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and, with a page given, write into it."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    names = arguments.only or list(PARTS)
    if arguments.write is not None:
        try:
            for name in names:
                split_page(arguments.write, name)
        except (OSError, ValueError) as error:
            parser.error(str(error))
    console = Console(width=None if Console().is_terminal else 120)
    console.print(machine(), soft_wrap=True)
    for name in names:
        section = PARTS[name](QUICK if arguments.quick else FULL)
        show(section, console)
        if arguments.write is not None:
            write(section, arguments.write)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="parts to measure, else all")
    parser.add_argument("--quick", action="store_true", help="a trial; its figures mean nothing")
    parser.add_argument(
        "--write",
        nargs="?",
        type=Path,
        const=PAGE,
        metavar="PAGE",
        help=f"put the tables between their marks in a page, {PAGE.name} unless named",
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())

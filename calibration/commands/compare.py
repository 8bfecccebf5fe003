"""Run the same placements through unaware, aware, pairwise and des, side by side."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.cases.case import Measurement, PlacementCase
from calibration.commands.console import console, console_table, say
from calibration.commands.ending import UsageError
from calibration.commands.flags import add_flag, names, whole_number
from calibration.commands.placements import (
    add_sampling_flags,
    add_worlds_flags,
    placements_to_measure,
)
from calibration.commands.predictions import predict_all
from calibration.commands.reference import BACKENDS, add_reference_flags, reference_of
from des.base.atomic_write import write_atomically
from des.base.lazy import lazy

if TYPE_CHECKING:
    from rich.table import Table

    from calibration.cases import table as cases_table
    from calibration.fit import errors, regimes
    from calibration.fit.errors import Fidelity
    from calibration.reference.astra_sim import ReferenceBackend
else:
    cases_table = lazy("calibration.cases.table")
    errors = lazy("calibration.fit.errors")
    regimes = lazy("calibration.fit.regimes")


EXAMPLES = """\
examples:
  python -m calibration compare
      16 placements on the default world
  python -m calibration compare --worlds drawn --num-domains 3,5,10 --samples 600 \\
          --model llama2_7b,llama2_70b --show 0
      200 fresh placements on worlds of each size: how faithful des is to each backend
"""

Said = Mapping[str, Sequence[Measurement]]
"""What the backends say, and `des` about the same worlds, by the headings of columns."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    add_sampling_flags(parser, num_samples=16)
    add_worlds_flags(parser)
    add_flag(parser, "--backends", names, "unaware,aware,pairwise", f"of {', '.join(BACKENDS)}")
    add_reference_flags(parser)
    add_flag(parser, "--show", whole_number, "20", "placements to print side by side, at most")
    parser.add_argument("--out", type=Path, metavar="FILE", help="CSV file for all placements")


def run(arguments: argparse.Namespace) -> int:
    """Measure the placements by every backend, and compare `des` with each."""
    placements, backends = placements_to_measure(arguments), backends_of(arguments.backends)
    reference = reference_of(arguments, backends)
    if arguments.out is not None:
        _make_room(arguments.out)
    say(placements.title)
    cases = placements.draw("check")
    said: dict[str, Sequence[Measurement]] = {}
    for backend in backends:
        say(reference.describe(cases, backend))
        said[backend] = reference.measure(cases, backend)
        said[f"des for {backend}"] = predict_all(reference.seen(cases, backend))
    if arguments.show:
        console().print(_side_by_side(cases[: arguments.show], said))
    for backend in backends:
        rows = regimes.fidelities(cases, {"des": said[f"des for {backend}"]}, said[backend])
        console().print(errors.fidelity_table(rows, title=f"des against {backend}"))
        for line in regimes.worst_cases(cases, rows):
            say(f"worst {line}")
    _show_differences(cases, backends, said)
    if arguments.out is not None:
        _write(cases, said, arguments.out)
        say(f"written: {arguments.out}")
    return 0


def _make_room(path: Path) -> None:
    """Find out now, not after all placements, that a file cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise UsageError(f"--out must be a file, got the folder {path}")
    with tempfile.TemporaryFile(dir=path.parent):
        pass


def backends_of(given: Sequence[str]) -> list[ReferenceBackend]:
    """Check the names of backends.

    Raises
    ------
    UsageError
        If there is no such backend.
    """
    backends = [each for name in given for each in BACKENDS if each == name]
    if len(backends) != len(given):
        raise UsageError(f"--backends must be of {', '.join(BACKENDS)}; got {', '.join(given)}")
    return list(dict.fromkeys(backends))


def _side_by_side(cases: Sequence[PlacementCase], said: Said) -> Table:
    table = console_table("Iteration time, s", ("placement", "domains: layers"), *said)
    for index, name in enumerate(regimes.case_names(cases)):
        placement = " | ".join(map(str, cases[index].plan.placements))
        times = (f"{measurements[index].makespan_s:.3f}" for measurements in said.values())
        table.add_row(name, placement, *times)
    return table


def _show_differences(
    cases: Sequence[PlacementCase], backends: Sequence[ReferenceBackend], said: Said
) -> None:
    """Say how far the backends are from the one that knows every link."""
    others = [each for each in backends if each != "pairwise"]
    if "pairwise" not in backends or not others:
        return
    names = regimes.case_names(cases)
    rows: dict[str, Fidelity] = {
        each: errors.fidelity(names, said[each], said["pairwise"]) for each in others
    }
    console().print(
        errors.fidelity_table(rows, title="Backends against pairwise, each in its own world")
    )


def _write(cases: Sequence[PlacementCase], said: Said, path: Path) -> None:
    table = cases_table.sample_table(cases, said, joint=": ")
    content = table.to_csv(index=False, lineterminator="\n")
    write_atomically(path, content.encode())

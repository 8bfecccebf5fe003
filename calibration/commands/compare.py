"""Run the same placements through unaware, aware, pairwise and des, side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibration.cases.case import Measurement, PlacementCase
from calibration.commands.console import console, console_table, say
from calibration.commands.flags import require_counts, require_names, require_whole_number
from calibration.commands.placements import Worlds
from calibration.commands.reference import ReferenceFlags
from calibration.measuring.measure import ReferenceBackend
from des.base.atomic_write import write_atomically
from des.base.checks import require_count
from des.base.command import UsageError
from des.base.csv_text import frame_csv
from des.base.document import DOCUMENT
from des.base.flags import option
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from rich.table import Table

    from calibration.cases import table as cases_table
    from calibration.commands import predictions
    from calibration.fit import errors, regimes
    from calibration.fit.errors import Fidelity


EXAMPLES = """\
examples:
  python -m calibration compare
      16 placements on the default world
  python -m calibration compare --worlds drawn --num-domains 3,5,10 --samples 600 \\
          --model llama2_7b,llama2_70b --show 0
      200 fresh placements on worlds of each size: how faithful des is to each backend
"""

Said = Mapping[str, Sequence[Measurement]]
"""Results of the backends, and of `des` on the same worlds, by the headings of columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ReferenceFlags):
    """Flags of a comparison."""

    samples: int = option(16, "placements to draw", check=require_count)
    worlds: Worlds = option(
        "given",
        "given: epochs of the network; equal, drawn: domains like those of the network, every two "
        "joined by equal links or by links of their own",
    )
    num_domains: tuple[int, ...] = option(
        (),
        "of worlds that are not given, such as 3,5,10",
        check=require_counts,
        default_text="none",
    )
    backends: tuple[ReferenceBackend, ...] = option(
        ("unaware", "aware", "pairwise"), "networks of the reference", check=require_names
    )
    show: int = option(20, "placements to print side by side, at most", check=require_whole_number)
    out: Path | None = option(None, "CSV file for all placements")


def run(config: Config) -> None:
    """Measure the placements by every backend, and compare `des` with each."""
    placements = config.placements(worlds=config.worlds, num_domains=config.num_domains)
    backends = list(dict.fromkeys(config.backends))
    reference = config.reference(backends)
    if config.out is not None:
        _make_room(config.out)
    say(placements.title)
    cases = placements.draw("check")
    said: dict[str, Sequence[Measurement]] = {}
    for backend in backends:
        say(reference.describe(cases, backend))
        said[backend] = reference.measure(cases, backend)
        said[f"des for {backend}"] = predictions.predict_all(reference.seen(cases, backend))
    if config.show:
        console().print(_side_by_side(cases[: config.show], said))
    for backend in backends:
        rows = regimes.fidelities(cases, {"des": said[f"des for {backend}"]}, said[backend])
        console().print(errors.fidelity_table(rows, title=f"des against {backend}"))
        for line in regimes.worst_cases(cases, rows):
            say(f"worst {line}")
    DOCUMENT.add(rows=cases_table.sample_table(cases, said, joint=": "))
    _show_differences(cases, backends, said)
    if config.out is not None:
        _write(cases, said, config.out)
        say(f"written: {config.out}")


def _make_room(path: Path) -> None:
    """Find out now, not after all placements, that a file cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise UsageError(f"--out must be a file, got the folder {path}")
    with tempfile.TemporaryFile(dir=path.parent):
        pass


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
    write_atomically(path, frame_csv(table).encode())

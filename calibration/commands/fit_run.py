"""Fit correction factors: sample placements, measure them by a reference, fit, and say what for."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.commands.console import console, progress_bar, say
from calibration.commands.placements import add_sampling_flags, placements_to_measure
from calibration.commands.predictions import processes
from calibration.commands.reference import BACKENDS, add_reference_flags, reference_of
from des.base.atomic_write import write_together
from des.base.lazy import lazy

if TYPE_CHECKING:
    from calibration.fit import corrections_file, errors, fit, prediction, regimes, report
    from calibration.fit.report import Calibration
else:
    corrections_file = lazy("calibration.fit.corrections_file")
    errors = lazy("calibration.fit.errors")
    fit = lazy("calibration.fit.fit")
    prediction = lazy("calibration.fit.prediction")
    regimes = lazy("calibration.fit.regimes")
    report = lazy("calibration.fit.report")


EXAMPLES = """\
examples:
  python -m calibration run
      128 placements of Llama 2 70B on the default world, by our engine of ASTRA-sim
  python -m calibration run --backend pairwise --seed 1 --out runs/pairwise
      every link with its own figures
  python -m calibration run --endpoints one_in_flight --astra-bin DIR
      by the original's programs

files written to --out:
  corrections.json   the factors, for --corrections of other commands
  samples.csv        every placement with what the reference and des say
  report.md, predicted_versus_reference.png
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    add_sampling_flags(parser, num_samples=128)
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default="aware",
        help="network of the reference (default: %(default)s)",
    )
    add_reference_flags(parser)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/calibration"),
        metavar="DIR",
        help="folder for the files (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Calibrate and write the files."""
    placements, backend = placements_to_measure(arguments), arguments.backend
    fitted_for = placements.fitted_for()
    fit.require_enough(placements.num)
    reference = reference_of(arguments, [backend])
    arguments.out.mkdir(parents=True, exist_ok=True)
    start_s = time.perf_counter()
    say(placements.title)
    cases = placements.draw("fit")
    world = reference.describe(cases, backend)
    say(world)
    measured = reference.measure(cases, backend)
    measured_s = time.perf_counter() - start_s
    seen = reference.seen(cases, backend)
    with processes(arguments.workers) as executor, progress_bar("fit") as progress:
        progress.add_task("", total=None)
        found = fit.fit(
            seen, measured, predict=prediction.predict, executor=executor, seed=placements.seed
        )
    calibration = report.Calibration(
        placements=placements.title, reference=world, cases=seen, measured=measured, fit=found
    )
    show_fit(calibration)
    files = report.report_files(calibration)
    files = {
        "corrections.json": corrections_file.corrections_bytes(found.corrections, fitted_for),
        **files,
    }
    write_together({arguments.out / name: content for name, content in files.items()})
    for name in files:
        say(f"written: {arguments.out / name}")
    took_s = time.perf_counter() - start_s
    say(f"took {took_s:.1f} s, of which the reference {measured_s:.1f} s")
    return 0


def show_fit(calibration: Calibration) -> None:
    """Print the uncorrected error, the factors, and the errors before and after."""
    found = console()
    found.print(errors.fidelity_table(calibration.uncorrected(), title="Without factors"))
    for line in report.factor_lines(calibration.fit):
        say(line)
    rows = calibration.before_and_after()
    found.print(errors.fidelity_table(rows, title="Before and after (held out)"))
    for line in regimes.worst_cases(calibration.cases, rows):
        say(f"worst {line}")

"""Fit correction factors: sample placements, measure them by a reference, fit, record for what."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.commands.console import console, progress_bar, say
from calibration.commands.reference import ReferenceFlags
from calibration.reference.astra_sim import ReferenceBackend
from des.base.atomic_write import write_together
from des.base.document import DOCUMENT
from des.base.flags import option
from des.base.lazy import lazy

if TYPE_CHECKING:
    from calibration.commands import predictions
    from calibration.fit import corrections_file, errors, fit, prediction, regimes, report
    from calibration.fit.report import Calibration
else:
    predictions = lazy("calibration.commands.predictions")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ReferenceFlags):
    """Settings of a fit; the fields are the flags."""

    backend: ReferenceBackend = option("aware", "network of the reference")
    out: Path = option(Path("runs/calibration"), "folder for the files")


def run(config: Config) -> int:
    """Calibrate and write the files."""
    placements, backend = config.placements(), config.backend
    fitted_for = placements.fitted_for()
    fit.require_enough(placements.num)
    reference = config.reference([backend])
    config.out.mkdir(parents=True, exist_ok=True)
    start_s = time.perf_counter()
    say(placements.title)
    cases = placements.draw("fit")
    world = reference.describe(cases, backend)
    say(world)
    measured = reference.measure(cases, backend)
    measured_s = time.perf_counter() - start_s
    seen = reference.seen(cases, backend)
    with predictions.processes(config.workers) as executor, progress_bar("fit") as progress:
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
    write_together({config.out / name: content for name, content in files.items()})
    DOCUMENT.add(corrections=asdict(found.corrections), files=[config.out / name for name in files])
    for name in files:
        say(f"written: {config.out / name}")
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

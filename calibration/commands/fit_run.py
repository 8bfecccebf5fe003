"""Fit correction factors: sample placements, measure them by a reference, fit, record for what."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from calibration.commands.console import console, progress_bar, say, write_and_say
from calibration.commands.placements import Placements
from calibration.commands.reference import Reference, ReferenceFlags
from calibration.measuring.measure import ReferenceBackend
from calibration.reference.pool import worker_processes
from des.base.flags import option
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from calibration.cases import message_cases
    from calibration.cases.case import PlacementCase
    from calibration.fit import (
        corrections_file,
        errors,
        fit,
        prediction,
        regimes,
        report,
        transport_fit,
    )
    from calibration.fit.report import Calibration
    from des.figures import paper
    from des.plan.transport_law import TransportLaw


EXAMPLES = """\
examples:
  python -m calibration run
      128 placements of Llama 2 70B on the default world, by our engine of ASTRA-sim
  python -m calibration run --backend pairwise --seed 1 --out runs/pairwise
      every link with its own figures
  python -m calibration run --endpoints one_in_flight --astra-bin DIR
      by the original's programs
  python -m calibration run --backend ns3 --transport cubic --samples 32
      packet by packet, by the extra ns3

files written to --out:
  corrections.json   the factors, for --corrections of other commands
  samples.csv        every placement with what the reference and des say
  report.md, predicted_versus_reference.png (--figures)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ReferenceFlags):
    """Flags of a fit."""

    backend: ReferenceBackend = option("aware", "network of the reference")
    out: Path = option(Path("runs/calibration"), "folder for the files")
    figures: tuple[str, ...] = option(
        ("png",), "formats of the plot, some of png, pdf, svg; none: no files"
    )


def run(config: Config) -> None:
    """Calibrate and write the files."""
    formats = paper.choose_formats("--figures", config.figures)
    fitted_for = config.placements().fitted_for()
    checked = _check(config)
    config.out.mkdir(parents=True, exist_ok=True)
    start_s = time.perf_counter()
    calibration = _calibrate(config.backend, config.workers, *checked)
    show_fit(calibration)
    files = {
        "corrections.json": corrections_file.corrections_bytes(
            calibration.fit.corrections, fitted_for
        ),
        **report.report_files(calibration, formats),
    }
    write_and_say(config.out, files, corrections=asdict(calibration.fit.corrections))
    say(f"took {time.perf_counter() - start_s:.1f} s")


def calibrated(config: Config) -> Calibration:
    """Measure the placements by the reference, and fit.

    Raises
    ------
    ValueError
        If there are too few placements, or a flag does not go with the reference.
    """
    return _calibrate(config.backend, config.workers, *_check(config))


def _check(config: Config) -> tuple[Placements, Reference]:
    """Placements and reference of the flags; nothing is written or measured before."""
    placements = config.placements()
    fit.require_enough(placements.num)
    return placements, config.reference([config.backend])


def _calibrate(
    backend: ReferenceBackend, workers: int, placements: Placements, reference: Reference
) -> Calibration:
    start_s = time.perf_counter()
    say(placements.title)
    cases = placements.draw("fit")
    world = reference.describe(cases, backend)
    say(world)
    measured = reference.measure(cases, backend)
    say(f"the reference took {time.perf_counter() - start_s:.1f} s")
    seen = reference.seen(cases, backend)
    law = _law_of(reference, cases[0]) if backend == "ns3" else None
    with worker_processes(workers) as at_work, progress_bar("fit") as progress:
        progress.add_task("", total=None)
        if law is not None:
            found = transport_fit.fit_transport(
                law, seen, measured, predict=transport_fit.predict_with_law, at_work=at_work
            )
        else:
            found = fit.fit(
                seen, measured, predict=prediction.predict, at_work=at_work, seed=placements.seed
            )
    return report.Calibration(
        placements=placements.title, reference=world, cases=seen, measured=measured, fit=found
    )


def _law_of(reference: Reference, case: PlacementCase) -> TransportLaw:
    """Measure single messages on the links of a world, and fit the law of its transport."""
    singles = message_cases.message_cases(case.topology)
    say(f"law: fitted to {len(singles)} single messages, none of them of a placement")
    measured = reference.measure(singles, "ns3")
    packets = case.topology.transport.packets
    if packets.connections == "fresh":
        error = transport_fit.closed_form_error(singles, measured, packets)
        say(f"law: mean error of the closed form alone on these messages: {error:.1%}")
    return transport_fit.fit_law(singles, measured, packets)


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

"""Report of a calibration: a page, a figure, and every sample as a row."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from calibration.cases.case import Measurement, PlacementCase
from calibration.cases.table import sample_table
from calibration.fit.errors import Errors, Fidelity
from calibration.fit.fit import Fit
from calibration.fit.plot import predicted_versus_reference
from calibration.fit.regimes import fidelities, worst_cases
from calibration.fit.transport_fit import law_lines
from des.base.csv_text import frame_csv
from des.figures.figure import Figure
from des.figures.paper import image_bytes

PLOT = "predicted_versus_reference"

FIGURES: Mapping[str, str] = {
    "makespan": "iteration time",
    "communication": "communication volume",
    "exposed": "exposed communication",
}
"""Fields of `Fidelity` by the words for people."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A fit, and what it was made from.

    Parameters
    ----------
    placements, reference
        A line on what was sampled, and one on what measured it.
    cases
        As both simulators saw them.
    measured
        Measurements of the cases by the reference.
    fit
        Result of the fit.
    """

    placements: str
    reference: str
    cases: Sequence[PlacementCase]
    measured: Sequence[Measurement]
    fit: Fit

    def uncorrected(self) -> dict[str, Fidelity]:
        """Errors of `des` as it stands, by regime."""
        return fidelities(self.cases, {"before": self.fit.before}, self.measured)

    def before_and_after(self) -> dict[str, Fidelity]:
        """Errors without factors and with those that were fitted without the case, by regime.

        Where nothing was fitted the two are the same.
        """
        predictions = {"before": self.fit.before, "after": self.fit.held_out}
        return fidelities(self.cases, predictions, self.measured)


def report_files(calibration: Calibration, formats: Sequence[str] = ("png",)) -> dict[str, bytes]:
    """Make ``samples.csv``, ``report.md`` and the plot; equal calibrations give equal bytes."""
    samples, figure = frame_csv(_samples(calibration)), scatter_figure(calibration)
    plots = {f"{PLOT}.{one}": image_bytes(figure, one) for one in formats}
    return {
        "samples.csv": samples.encode(),
        "report.md": _report(calibration, tuple(plots)).encode(),
        **plots,
    }


def scatter_figure(calibration: Calibration) -> Figure:
    """Return the figure of predictions against the reference."""
    fit = calibration.fit
    predictions = {"without factors": fit.before}
    if fit.intervals or fit.fitted.transport is not None:
        predictions["with factors, held out"] = fit.held_out
    return predicted_versus_reference(
        [each.makespan_s for each in calibration.measured],
        {name: [each.makespan_s for each in said] for name, said in predictions.items()},
        title=f"{len(calibration.cases)} placements: des against the reference",
    )


def factor_lines(fit: Fit) -> list[str]:
    """Say what was fitted, what could not be, and whether it is kept."""
    lines = [
        f"{each.factor} = {each.value:.6g} (95 % interval {each.low:.6g} to {each.high:.6g})"
        for each in fit.intervals
    ]
    lines += [f"{each.factor}: not identified, {each.reason}" for each in fit.not_identified]
    if fit.fitted.transport is not None:
        lines += law_lines(fit.fitted.transport)
    if not lines:
        lines.append("no factor was fitted")
    verdict = "kept" if fit.kept else "not kept, des stays uncorrected"
    return [*lines, f"factors: {verdict}; {fit.reason}"]


def _samples(calibration: Calibration) -> pd.DataFrame:
    said = {
        "reference": calibration.measured,
        "uncorrected": calibration.fit.before,
        "held_out": calibration.fit.held_out,
    }
    return sample_table(calibration.cases, said, joint="_")


def _report(calibration: Calibration, plots: Sequence[str]) -> str:
    fit, rows = calibration.fit, calibration.before_and_after()
    parts = [
        "# Fidelity of des to ASTRA-sim",
        f"{_sentence(calibration.placements)}\n{_sentence(calibration.reference)}",
        "## Without factors",
        "Exposed communication is summed up over the domains.",
        "\n".join(_markdown(calibration.uncorrected())),
        "## Factors",
        "\n".join(f"- {line}" for line in factor_lines(fit)),
        "## Before and after",
        "After: with factors that were fitted without the fold that the placement is in.",
        "\n".join(_markdown(rows)),
        "Worst in iteration time, by their position in samples.csv:",
        "\n".join(f"- {line}" for line in worst_cases(calibration.cases, rows)),
        *(f"![iteration times predicted and measured]({name})" for name in plots[:1]),
    ]
    return "\n\n".join(parts) + "\n"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _markdown(rows: Mapping[str, Fidelity]) -> Iterator[str]:
    yield "| regime | cases | figure | mean | p95 | bias | worst | worst case | Kendall tau |"
    yield "|---|---:|---|---:|---:|---:|---:|---|---:|"
    for regime, found in rows.items():
        for field, words in FIGURES.items():
            each: Errors = getattr(found, field)
            tau = "-" if each.kendall_tau is None else f"{each.kendall_tau:.4f}"
            errors = (
                *(f"{100.0 * error:.2g} %" for error in (each.mean, each.p95)),
                *(f"{100.0 * error:+.2g} %" for error in (each.bias, each.worst)),
            )
            cells = (regime, str(found.num_cases), words, *errors, each.worst_case, tau)
            yield f"| {' | '.join(cells)} |"

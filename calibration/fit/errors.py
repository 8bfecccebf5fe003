"""Accuracy of predictions: errors against references by regime, and agreement of ranks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich import box
from rich.table import Table

from calibration.cases.case import Measurement
from calibration.fit.relative_errors import relative_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Relative errors of one figure over some cases.

    Parameters
    ----------
    mean, p95
        Of absolute errors; the second is one that at least 95 % of the cases do not exceed.
    bias
        Mean of signed errors; positive where predictions are too large.
    worst, worst_case
        The signed error furthest from 0, and the name of its case, the first one of equals.
    kendall_tau
        Agreement of the ranks of predictions and references, tau-b [1]_: 1 where every two cases
        are in the same order. None where all predictions or all references are equal.

    References
    ----------
    .. [1] M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33(3), 1945.
    """

    mean: float
    p95: float
    bias: float
    worst: float
    worst_case: str
    kendall_tau: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """Errors of predictions; `calibration.fit.relative_errors` says relative to what."""

    num_cases: int
    makespan: Errors
    communication: Errors
    exposed: Errors


def fidelity(
    names: Sequence[str], predicted: Sequence[Measurement], reference: Sequence[Measurement]
) -> Fidelity:
    """Compare predictions with references.

    Parameters
    ----------
    names
        One a case, to name the worst ones by.
    predicted, reference
        Results of both simulators for each case.

    Raises
    ------
    ValueError
        If there are none, or not as many of each.
    """
    if not names or not len(names) == len(predicted) == len(reference):
        raise ValueError(
            "fidelity: there must be a name, a prediction and a reference for each case, at least "
            f"one; got {len(names)}, {len(predicted)} and {len(reference)}"
        )
    errors = [relative_errors(*pair) for pair in zip(predicted, reference, strict=True)]

    def of(figure: int) -> Errors:
        return sum_errors(
            names,
            [each[figure] for each in errors],
            kendall_tau=_kendall_tau(
                *([_figures(each)[figure] for each in side] for side in (predicted, reference))
            ),
        )

    return Fidelity(num_cases=len(names), makespan=of(0), communication=of(1), exposed=of(2))


def fidelity_by_regime(
    regimes: Sequence[str],
    names: Sequence[str],
    predicted: Sequence[Measurement],
    reference: Sequence[Measurement],
) -> dict[str, Fidelity]:
    """Compare the cases of each regime, in the order in which regimes come up.

    Raises
    ------
    ValueError
        If there is not one of everything for each case.
    """
    if len(regimes) != len(names):
        raise ValueError(
            f"fidelity: regimes must hold one for each of {len(names)} cases, got {len(regimes)}"
        )
    cases = list(zip(regimes, names, predicted, reference, strict=True))
    return {
        regime: fidelity(*zip(*[rest for own, *rest in cases if own == regime], strict=True))
        for regime in dict.fromkeys(regimes)
    }


def fidelity_table(rows: Mapping[str, Fidelity], *, title: str | None = None) -> Table:
    """Lay out fidelities for a console, three lines each; the keys of ``rows`` name them."""
    table = Table(title=title, box=box.SIMPLE)
    table.add_column("regime")
    table.add_column("cases", justify="right")
    table.add_column("figure")
    for heading in ("mean", "p95", "bias", "worst"):
        table.add_column(f"{heading} [%]", justify="right")
    table.add_column("worst case")
    table.add_column("Kendall tau", justify="right")
    for name, found in rows.items():
        labels = (name, str(found.num_cases))
        for figure in ("makespan", "communication", "exposed"):
            each: Errors = getattr(found, figure)
            table.add_row(
                *labels,
                figure,
                *(_percent(error, "") for error in (each.mean, each.p95)),
                *(_percent(error, "+") for error in (each.bias, each.worst)),
                each.worst_case,
                "-" if each.kendall_tau is None else f"{each.kendall_tau:.4f}",
            )
            labels = ("", "")
    return table


def _percent(error: float, sign: str) -> str:
    """Show an error in per cent to the third decimal, smaller ones by their size."""
    percent = 100.0 * error
    return (
        f"{percent:{sign}.3f}" if percent == 0.0 or abs(percent) >= 5e-4 else f"{percent:{sign}.0e}"
    )


def _figures(measurement: Measurement) -> tuple[float, float, float]:
    """Figures in the order of `RelativeErrors`."""
    exposed_s = sum(measurement.exposed_s)
    return measurement.makespan_s, measurement.communication_bytes, exposed_s


def sum_errors(
    names: Sequence[str], errors: Sequence[float], *, kendall_tau: float | None
) -> Errors:
    """Sum up signed relative errors of one figure."""
    sizes = np.abs(errors)
    worst = int(np.argmax(sizes))
    return Errors(
        mean=float(np.mean(sizes)),
        p95=float(np.quantile(sizes, 0.95, method="inverted_cdf")),  # infinite ones stay apart
        bias=float(np.mean(errors)),
        worst=float(errors[worst]),
        worst_case=names[worst],
        kendall_tau=kendall_tau,
    )


def _kendall_tau(predicted: Sequence[float], reference: Sequence[float]) -> float | None:
    """Count pairs in the same order less those in the other, over the roots of those untied."""
    first, other = (
        np.greater.outer(one, one).astype(np.int8) - np.less.outer(one, one)
        for one in (np.array(predicted), np.array(reference))
    )
    untied = [np.count_nonzero(each) // 2 for each in (first, other)]
    if 0 in untied:
        return None
    agreeing = int((first * other).sum(dtype=np.int64)) // 2
    return max(-1.0, min(1.0, agreeing / math.sqrt(untied[0]) / math.sqrt(untied[1])))

"""Test stored factors on fresh placements; exits 1 if an error exceeds its bound."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from calibration.cases.case import Granularity
from calibration.commands.console import console, say
from calibration.commands.flags import add_flag, positive
from calibration.commands.placements import add_sampling_flags, placements_to_measure
from calibration.commands.predictions import predict_all
from calibration.commands.reference import BACKENDS, add_reference_flags, reference_of
from des.base.lazy import lazy

if TYPE_CHECKING:
    from calibration.fit import corrections_file, regimes, report
    from calibration.fit import errors as fit_errors
    from calibration.fit.errors import Fidelity
else:
    corrections_file = lazy("calibration.fit.corrections_file")
    fit_errors = lazy("calibration.fit.errors")
    regimes = lazy("calibration.fit.regimes")
    report = lazy("calibration.fit.report")


EXAMPLES = """\
examples:
  python -m calibration check
      the factors of `python -m calibration run`, on 200 placements that no fit has seen
  python -m calibration check --corrections factors.json --backend pairwise --bound 0.01
"""

EXCEEDED_EXIT = 1

BOUNDS: Mapping[Granularity, tuple[float, float, float]] = MappingProxyType(
    {"domain": (0.003, 0.01, 0.998), "gpu": (0.015, 0.04, 0.99)}
)
"""Mean and 95th percentile of errors, and Kendall tau, that are good enough."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    add_flag(
        parser,
        "--corrections",
        Path,
        "runs/calibration/corrections.json",
        "factors; those for another model or network are refused",
    )
    add_sampling_flags(parser, num_samples=200)
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default="aware",
        help="network of the reference (default: %(default)s)",
    )
    for position, (flag, explanation) in enumerate(
        (
            ("--bound", "largest mean absolute error, a fraction, of each figure"),
            ("--p95-bound", "largest 95th percentile of absolute errors of each figure"),
            ("--tau-bound", "least Kendall tau of iteration times"),
        )
    ):
        ours, gpu = (f"{BOUNDS[each][position]:g}" for each in ("domain", "gpu"))
        defaults = f"default: {ours}, at --granularity gpu {gpu}"
        add_flag(parser, flag, positive, None, f"{explanation} ({defaults})")
    add_reference_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure fresh placements and compare."""
    placements, backend = placements_to_measure(arguments), arguments.backend
    corrections = corrections_file.read_corrections(
        arguments.corrections, used_for=placements.fitted_for()
    )
    reference = reference_of(arguments, [backend])
    say(placements.title)
    cases = placements.draw("check")
    say(reference.describe(cases, backend))
    say(f"factors: {corrections}")
    measured = reference.measure(cases, backend)
    seen = reference.seen(cases, backend)
    rows = regimes.fidelities(seen, {"corrected": predict_all(seen, corrections)}, measured)
    console().print(fit_errors.fidelity_table(rows, title="With the factors"))
    for line in regimes.worst_cases(seen, rows):
        say(f"worst {line}")
    exceeded = list(_exceeded(rows[regimes.ALL], _bounds(arguments)))
    for line in exceeded:
        say(f"EXCEEDED: {line}")
    if not exceeded:
        say("all errors are within their bounds")
    return EXCEEDED_EXIT if exceeded else 0


def _bounds(arguments: argparse.Namespace) -> tuple[float, float, float]:
    given = (arguments.bound, arguments.p95_bound, arguments.tau_bound)
    usual = BOUNDS[arguments.granularity]
    mean, p95, tau = (
        default if bound is None else bound for bound, default in zip(given, usual, strict=True)
    )
    return mean, p95, tau


def _exceeded(found: Fidelity, bounds: tuple[float, float, float]) -> Iterator[str]:
    mean_bound, p95_bound, tau_bound = bounds
    for field, words in report.FIGURES.items():
        errors = getattr(found, field)
        for name, error, bound in (
            ("mean", errors.mean, mean_bound),
            ("p95", errors.p95, p95_bound),
        ):
            if error > bound:
                yield f"{name} error of {words} is {100 * error:.4g} %, allowed {100 * bound:.4g} %"
    tau = found.makespan.kendall_tau
    if tau is not None and tau < tau_bound:
        yield f"Kendall tau of iteration times is {tau:.4f}, allowed {tau_bound:.4f}"

"""Test stored factors on fresh placements; exits 1 if an error exceeds its bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

from calibration.cases.case import Granularity
from calibration.commands.console import console, say
from calibration.commands.reference import ReferenceFlags
from calibration.measuring.measure import ReferenceBackend
from des.base.checks import require_count, require_positive
from des.base.document import DOCUMENT
from des.base.flags import option
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from calibration.commands import predictions
    from calibration.fit import corrections_file, regimes, report
    from calibration.fit import errors as fit_errors
    from calibration.fit.errors import Fidelity


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


def _bound_text(position: int) -> str:
    ours, gpu = (f"{BOUNDS[each][position]:g}" for each in ("domain", "gpu"))
    return f"{ours}, at --granularity gpu {gpu}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ReferenceFlags):
    """Flags of a check."""

    samples: int = option(200, "placements to draw", check=require_count)
    corrections: Path = option(
        Path("runs/calibration/corrections.json"),
        "factors; those for another model or network are refused",
        is_file=True,
    )
    backend: ReferenceBackend = option("aware", "network of the reference")
    bound: float | None = option(
        None,
        "largest mean absolute error, a fraction, of each figure",
        check=require_positive,
        default_text=_bound_text(0),
    )
    p95_bound: float | None = option(
        None,
        "largest 95th percentile of absolute errors of each figure",
        check=require_positive,
        default_text=_bound_text(1),
    )
    tau_bound: float | None = option(
        None,
        "least Kendall tau of iteration times",
        check=require_positive,
        default_text=_bound_text(2),
    )


def run(config: Config) -> int:
    """Measure fresh placements and compare."""
    placements, backend = config.placements(), config.backend
    corrections = corrections_file.read_corrections(
        config.corrections, used_for=placements.fitted_for()
    )
    reference = config.reference([backend])
    say(placements.title)
    cases = placements.draw("check")
    say(reference.describe(cases, backend))
    say(f"factors: {corrections}")
    measured = reference.measure(cases, backend)
    seen = reference.seen(cases, backend)
    rows = regimes.fidelities(
        seen, {"corrected": predictions.predict_all(seen, corrections)}, measured
    )
    console().print(fit_errors.fidelity_table(rows, title="With the factors"))
    for line in regimes.worst_cases(seen, rows):
        say(f"worst {line}")
    exceeded = list(_exceeded(rows[regimes.ALL], _bounds(config)))
    for line in exceeded:
        say(f"EXCEEDED: {line}")
    if not exceeded:
        say("all errors are within their bounds")
    DOCUMENT.add(errors={name: asdict(row) for name, row in rows.items()}, exceeded=exceeded)
    return EXCEEDED_EXIT if exceeded else 0


def _bounds(config: Config) -> tuple[float, float, float]:
    given = (config.bound, config.p95_bound, config.tau_bound)
    usual = BOUNDS[config.granularity]
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

"""Cases by regime: how errors over many placements are broken down, and what the worst are."""

from collections.abc import Mapping, Sequence

from calibration.cases.case import Measurement, PlacementCase
from calibration.fit.errors import Fidelity, fidelity, fidelity_by_regime

ALL = "all"


def fidelities(
    cases: Sequence[PlacementCase],
    predictions: Mapping[str, Sequence[Measurement]],
    reference: Sequence[Measurement],
) -> dict[str, Fidelity]:
    """Compare predictions by name with the reference: over all cases, then regime by regime.

    Regimes are the numbers of domains of the worlds and of those in use, and the schedules, each of
    them where the cases differ in it. With several predictions each regime has a row for each.
    """
    names = case_names(cases)
    rows: dict[str, dict[str, Fidelity]] = {}
    for name, predicted in predictions.items():
        rows[name] = {ALL: fidelity(names, predicted, reference)}
        for regimes in _partitions(cases):
            rows[name] |= fidelity_by_regime(regimes, names, predicted, reference)
    regimes_in_order = [ALL, *(each for part in _partitions(cases) for each in sorted(set(part)))]
    return {
        regime if len(rows) == 1 else f"{regime}: {name}": rows[name][regime]
        for regime in regimes_in_order
        for name in rows
    }


def _partitions(cases: Sequence[PlacementCase]) -> list[list[str]]:
    """Regime of each case, for each way to break the cases down that makes a difference."""
    partitions = [
        [f"{case.topology.num_domains:2d} domains" for case in cases],
        [f"{len(case.used_domains):2d} domains in use" for case in cases],
        [case.plan.schedule for case in cases],
    ]
    return [regimes for regimes in partitions if len(set(regimes)) > 1]


def case_names(cases: Sequence[PlacementCase]) -> list[str]:
    """Short names by position, counted from 0 as in files of samples."""
    return [f"#{index} {case.plan.schedule}" for index, case in enumerate(cases)]


def worst_cases(cases: Sequence[PlacementCase], rows: Mapping[str, Fidelity]) -> list[str]:
    """Describe the worst of all cases in iteration time, a line for each prediction."""
    described = dict(zip(case_names(cases), map(_description, cases), strict=True))
    worst = dict.fromkeys(
        each.makespan.worst_case for each in rows.values() if each.num_cases == len(cases)
    )
    return [f"{name}: {described[name]}" for name in worst]


def _description(case: PlacementCase) -> str:
    sharing = "" if not case.plan.parallelism else f", {case.plan.parallelism[0]}"
    return (
        f"{case.workload.name}, {case.workload.num_microbatches} microbatches of "
        f"{case.workload.message_bytes / 1e6:.1f} MB, {case.topology.num_domains} domains"
        f"{sharing}, {' | '.join(map(str, case.plan.placements))}"
    )

"""Levels of detail at which an iteration is simulated, on placements that they share.

They are compared by times, ranks, and what a plan chosen at one costs at the next.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from time import process_time

import pandas as pd

from calibration.cases.case import Measurement, PlacementCase
from calibration.cases.sampler import sample_cases
from calibration.cases.settings import Regime, WorkloadFamily
from calibration.fit.errors import fidelity
from calibration.fit.prediction import measurement_of, predict
from calibration.fit.regimes import case_names
from calibration.measuring.measure import measure_case
from calibration.packet.measure_packets import child_cpu_s
from calibration.reference.astra_config import Backend
from des import Topology, simulate
from des.world.packet_transport import Congestion, Connections

Measure = Callable[[PlacementCase], Measurement]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailLevel:
    """A level: its name, what it adds to the level before, and how it measures a case."""

    name: str
    adds: str
    measure: Measure


def built_in_levels() -> tuple[DetailLevel, ...]:
    """Levels without an extra: both forms of our simulator, then ASTRA-sim's networks by detail."""
    analytical: tuple[tuple[Backend, str], ...] = (
        ("unaware", "ASTRA-sim's files; one link for all, messages never meet"),
        ("aware", "messages queue for links"),
        ("pairwise", "every link its own figures"),
    )
    return (
        DetailLevel(name="compiled", adds="our simulator, compiled", measure=predict),
        DetailLevel(name="simpy", adds="the same, readable", measure=_simulate),
        *(
            DetailLevel(name=name, adds=adds, measure=partial(measure_case, backend=name))
            for name, adds in analytical
        ),
    )


def packet_levels(
    transports: Sequence[Congestion], connections: Connections
) -> tuple[DetailLevel, ...]:
    """Levels of ns-3's packets, one for each congestion control."""
    return tuple(
        DetailLevel(
            name=f"ns3 {congestion}",
            adds=f"packets, TCP, {connections} connections",
            measure=partial(_by_packets, congestion=congestion, connections=connections),
        )
        for congestion in transports
    )


def _simulate(case: PlacementCase) -> Measurement:
    return measurement_of(case, simulate(case.topology, case.workload, case.plan))


def _by_packets(
    case: PlacementCase, *, congestion: Congestion, connections: Connections
) -> Measurement:
    topology = case.topology
    packets = replace(topology.transport.packets, congestion=congestion, connections=connections)
    return measure_case(replace(case, topology=topology.with_packets(packets)), "ns3")


def draw_shared_placements(
    topology: Topology, family: WorkloadFamily, num: int, seed: int
) -> list[PlacementCase]:
    """Draw placements of one job on one world, on the links at the start.

    Raises
    ------
    ValueError
        As `calibration.cases.sampler.sample_cases`.
    """
    cases = sample_cases(topology, family, num, seed=seed, regime=Regime(), purpose="check")
    world = topology.at_start()
    return [replace(case, topology=world) for case in cases]


def measured_with_cpu_s(level: DetailLevel, case: PlacementCase) -> tuple[Measurement, float]:
    """Measure a case and the CPU time of doing so, that of ns-3's child included. [s]"""
    began_s, child_s = process_time(), child_cpu_s()
    found = level.measure(case)
    return found, process_time() - began_s + child_cpu_s() - child_s


Results = Mapping[str, Sequence[tuple[Measurement, float]]]
"""Measurements and CPU seconds of all cases by level, in the order of levels."""


def placement_rows(cases: Sequence[PlacementCase], results: Results) -> pd.DataFrame:
    """Return a row for each level and placement, without CPU times: equal runs give equal rows."""
    return pd.DataFrame(
        [
            {
                "level": level,
                "placement": index,
                "domains_layers": " | ".join(map(str, case.plan.placements)),
                "schedule": case.plan.schedule,
                "iteration_s": found.makespan_s,
                "exposed_s": sum(found.exposed_s),
            }
            for level, measured in results.items()
            for index, (case, (found, _)) in enumerate(zip(cases, measured, strict=True))
        ]
    )


def level_rows(cases: Sequence[PlacementCase], results: Results) -> pd.DataFrame:
    """Return a row for each level; its error and ranks are those against the level before.

    ``regret_fraction`` is how much longer the best plan of the level before takes at this level
    than the best plan of this level.
    """
    names = case_names(cases)
    rows: list[dict[str, object]] = []
    before: Sequence[Measurement] | None = None
    for level, measured in results.items():
        found = [each for each, _ in measured]
        times_s = [each.makespan_s for each in found]
        row: dict[str, object] = {
            "level": level,
            "iteration_s": sum(times_s) / len(times_s),
            "exposed_s": sum(sum(each.exposed_s) for each in found) / len(found),
            "best_placement": times_s.index(min(times_s)),
        }
        if before is not None:
            errors = fidelity(names, before, found).makespan
            earlier_s = [each.makespan_s for each in before]
            chosen_s = times_s[earlier_s.index(min(earlier_s))]
            row |= {
                "error_before_fraction": errors.mean,
                "kendall_tau": errors.kendall_tau,
                "regret_fraction": chosen_s / min(times_s) - 1.0,
            }
        rows.append(row)
        before = found
    return pd.DataFrame(rows)


def cpu_s_of(results: Results) -> dict[str, float]:
    """Mean CPU seconds of a placement by level, without the first, which starts and compiles."""
    means = {}
    for level, measured in results.items():
        rest = [cpu_s for _, cpu_s in measured[1:]] or [measured[0][1]]
        means[level] = sum(rest) / len(rest)
    return means


def choices_kept(levels: pd.DataFrame) -> list[str]:
    """Say between which levels the best plan stays the best."""
    lines = []
    for before, row in pairwise(levels.to_dict("records")):
        stays = row["regret_fraction"] == 0.0
        said = "stays the best" if stays else f"costs {100 * row['regret_fraction']:.2f} % more"
        lines.append(f"the best plan of {before['level']} {said} on {row['level']}")
    return lines

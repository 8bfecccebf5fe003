"""Levels of detail at which an iteration is simulated, and placements that they share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import process_time

from calibration.cases.case import Measurement, PlacementCase
from calibration.cases.sampler import sample_cases
from calibration.cases.settings import Regime, WorkloadFamily
from calibration.fit.prediction import measurement_of, predict
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
        DetailLevel(name="simpy", adds="the same, readable", measure=_simulated),
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


def _simulated(case: PlacementCase) -> Measurement:
    return measurement_of(case, simulate(case.topology, case.workload, case.plan))


def _by_packets(
    case: PlacementCase, *, congestion: Congestion, connections: Connections
) -> Measurement:
    topology = case.topology
    packets = replace(topology.transport.packets, congestion=congestion, connections=connections)
    return measure_case(replace(case, topology=topology.with_packets(packets)), "ns3")


def shared_placements(
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

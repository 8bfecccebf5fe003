"""ASTRA-sim as what judges the placements of an environment, found through entry points."""

import os
from dataclasses import dataclass
from pathlib import Path

from calibration.cases.aggregation import Aggregation
from calibration.cases.case import Measurement, PlacementCase
from calibration.reference.astra_config import Backend, network_config, require_queues
from calibration.reference.astra_sim import measure_case
from calibration.reference.binaries import ReferenceRunError
from calibration.reference.export import why_only_ours
from calibration.reference.ns3 import Ns3
from calibration.reference.reference_programs import check_program, program_in
from des.job.workload import Workload
from des.plan.plan import Plan
from des.world.topology import Topology

BINARIES_VARIABLE = "ASTRA_SIM_BIN"
"""Environment variable with the folder of the original's programs; without it our engine runs."""

NS3_PROGRAM = "AstraSimNetwork"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticalBackend:
    """The iterations of an environment measured by an analytical network, one NPU per domain.

    Parameters
    ----------
    network
        Network model, see `calibration.reference.astra_config.Backend`.
    network_aggregation
        Mean of unequal links, for networks that know equal ones only.
    binaries
        Folder of the original's programs; None means our own engine, in this process.
    """

    network: Backend
    network_aggregation: Aggregation = "harmonic"
    binaries: Path | None = None

    def __post_init__(self) -> None:
        if self.binaries is not None:
            program_in(self.binaries, self.network)

    def check(self, topology: Topology, workload: Workload, plan: Plan) -> None:
        """Refuse what no trace can hold, or what the original's programs cannot run.

        Raises
        ------
        ValueError
            As `PlacementCase` and `network_config`, or naming what only our engine can run.
        """
        case = _case(topology, workload, plan)
        network_config(case, self.network, self.network_aggregation)
        if self.binaries is not None:
            _check_original(case, self.network, self.binaries)

    def measure(self, topology: Topology, workload: Workload, plan: Plan) -> Measurement:
        """Run one iteration of a plan; see `calibration.reference.astra_sim.measure`."""
        return measure_case(
            _case(topology, workload, plan),
            self.network,
            aggregation=self.network_aggregation,
            binaries=self.binaries,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ns3Backend:
    """The iterations of an environment measured by a user's packet-level program.

    Its links are those of the user's physical topology, so those of the world must stand still.
    """

    ns3: Ns3

    def __post_init__(self) -> None:
        check_program(self.ns3.binary)
        self.ns3.version()

    def check(self, topology: Topology, workload: Workload, plan: Plan) -> None:
        """Refuse what no trace can hold, what the program cannot run, and links that move.

        Raises
        ------
        ValueError
            As `PlacementCase`, or naming what is refused: messages that do not queue, too.
        """
        case = _case(topology, workload, plan)
        require_queues(topology, "ns3")
        if any(topology.epoch_of(seed).links != topology.links for seed in (0, 1)):
            raise ValueError(
                "backend ns3: topology.dynamics must leave the links as they are from epoch to "
                "epoch, as those of the physical topology do; got links that move"
            )
        _check_original(case, "unaware", self.ns3.binary)

    def measure(self, topology: Topology, workload: Workload, plan: Plan) -> Measurement:
        """Run one iteration of a plan; see `calibration.reference.astra_sim.measure`."""
        return measure_case(_case(topology, workload, plan), "ns3", ns3=self.ns3)


def unaware(*, network_aggregation: Aggregation = "harmonic") -> AnalyticalBackend:
    """Messages never meet; by the original's program where `BINARIES_VARIABLE` is set."""
    return AnalyticalBackend(
        network="unaware", network_aggregation=network_aggregation, binaries=_binaries()
    )


def aware(*, network_aggregation: Aggregation = "harmonic") -> AnalyticalBackend:
    """Messages queue for links; by the original's program where `BINARIES_VARIABLE` is set."""
    return AnalyticalBackend(
        network="aware", network_aggregation=network_aggregation, binaries=_binaries()
    )


def pairwise() -> AnalyticalBackend:
    """Messages queue for links of their own figures, which only our engine knows."""
    return AnalyticalBackend(network="pairwise")


def ns3(
    *,
    config: str | Path | None = None,
    physical_topology: str | Path | None = None,
    binary: str | Path | None = None,
) -> Ns3Backend:
    """Packets on the links of a physical topology; see `Ns3` for the files.

    Parameters
    ----------
    binary
        Left out, it is `NS3_PROGRAM` in the folder that `BINARIES_VARIABLE` names.

    Raises
    ------
    ReferenceRunError
        If one of them is not given, or the program cannot be run.
    ValueError
        If a file cannot be read.
    """
    folder = _binaries()
    if binary is None and folder is not None:
        binary = folder / NS3_PROGRAM
    if binary is None or config is None or physical_topology is None:
        raise ReferenceRunError(
            f"backend ns3: needs ASTRA-sim's program {NS3_PROGRAM}, as option binary or in the "
            f"folder {BINARIES_VARIABLE}, and options config and physical_topology; got "
            f"{binary!r}, {config!r} and {physical_topology!r}"
        )
    return Ns3Backend(
        ns3=Ns3(binary=Path(binary), config=Path(config), physical_topology=Path(physical_topology))
    )


def _binaries() -> Path | None:
    folder = os.environ.get(BINARIES_VARIABLE)
    return Path(folder) if folder else None


def _case(topology: Topology, workload: Workload, plan: Plan) -> PlacementCase:
    return PlacementCase(topology=topology, workload=workload, plan=plan)


def _check_original(case: PlacementCase, network: Backend, program: Path) -> None:
    why = why_only_ours(case, network)
    if why is not None:
        raise ValueError(f"{program}: the original cannot run this case: {why}")

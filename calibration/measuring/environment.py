"""ASTRA-sim as what judges the placements of an environment, found through entry points."""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.cases.aggregation import Aggregation
from calibration.cases.case import Measurement, PlacementCase
from calibration.measuring.measure import TIMEOUT_S, measure_case
from calibration.packet.numbers import network_numbers
from calibration.packet.process import ns3_version
from calibration.reference.astra_config import Backend, network_config, require_queues
from calibration.reference.binaries import ReferenceRunError
from calibration.reference.export import why_only_ours
from calibration.reference.ns3 import Ns3
from calibration.reference.reference_programs import check_program, program_in
from des.base.checks import require_positive
from des.base.lazy import lazy
from des.job.workload import Workload
from des.plan.plan import Plan
from des.world.topology import Topology

if TYPE_CHECKING:
    from calibration.packet import measure_packets
else:
    measure_packets = lazy("calibration.packet.measure_packets")

BINARIES_VARIABLE = "ASTRA_SIM_BIN"
"""Environment variable with the folder of the original's programs; without it our engine runs."""

NS3_PROGRAM = "AstraSimNetwork"


class _CaseBackend(ABC):
    """A backend that measures what an execution trace can hold."""

    __slots__ = ()

    def prepare(
        self, topology: Topology, workload: Workload, plan: Plan
    ) -> Callable[[], Measurement]:
        """Return what measures one iteration of a plan, see `agents.decision.simulator.Backend`.

        Raises
        ------
        ValueError
            As `PlacementCase`, or naming what the backend cannot measure.
        """
        return self._run_of(PlacementCase(topology=topology, workload=workload, plan=plan))

    @abstractmethod
    def _run_of(self, case: PlacementCase) -> Callable[[], Measurement]:
        """Return what measures a case, or refuse it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticalBackend(_CaseBackend):
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

    def _run_of(self, case: PlacementCase) -> Callable[[], Measurement]:
        """Refuse what `network_config` does, and what only our engine can run."""
        network_config(case, self.network, self.network_aggregation)
        if self.binaries is not None:
            _check_original(case, self.network, self.binaries)
        return partial(
            measure_case,
            case,
            self.network,
            aggregation=self.network_aggregation,
            binaries=self.binaries,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AstraNs3Backend(_CaseBackend):
    """The iterations of an environment measured by a user's packet-level program.

    Its links are those of the user's physical topology, so those of the world must stand still.
    """

    ns3: Ns3

    def __post_init__(self) -> None:
        check_program(self.ns3.binary)
        self.ns3.version()

    def _run_of(self, case: PlacementCase) -> Callable[[], Measurement]:
        """Refuse what the program cannot run, links that move, and messages that do not queue."""
        topology = case.topology
        require_queues(topology, "astra-ns3")
        if any(topology.epoch_of(seed).links != topology.links for seed in (0, 1)):
            raise ValueError(
                "backend astra-ns3: topology.dynamics must leave the links as they are from epoch "
                "to epoch, as those of the physical topology do; got links that move"
            )
        _check_original(case, "unaware", self.ns3.binary)
        return partial(measure_case, case, "astra-ns3", ns3=self.ns3)


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketBackend(_CaseBackend):
    """The iterations of an environment simulated packet by packet, one host per domain.

    Parameters
    ----------
    limit_s
        Most time that ns-3 may take until its next answer. [s]
    """

    limit_s: float = TIMEOUT_S

    def __post_init__(self) -> None:
        require_positive("backend ns3", "limit_s", self.limit_s)
        ns3_version()

    def _run_of(self, case: PlacementCase) -> Callable[[], Measurement]:
        """Refuse what `network_numbers` does, and messages that do not queue."""
        require_queues(case.topology, "ns3")
        network_numbers(case.topology)
        return partial(measure_packets.measure_packets, case, limit_s=self.limit_s)


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
    limit_s: float = TIMEOUT_S,
    config: str | Path | None = None,
    physical_topology: str | Path | None = None,
    binary: str | Path | None = None,
) -> PacketBackend | AstraNs3Backend:
    """Packets of the world's own links, by the ns-3 of the extra ``ns3``.

    TCP's settings are those of the world, ``transport.packets``.

    Parameters
    ----------
    limit_s
        Most time that ns-3 may take until its next answer. [s]
    config, physical_topology, binary
        Options of the backend ``astra-ns3``, which had this name before: with any of them it is
        made, and a warning says so.

    Raises
    ------
    ReferenceRunError
        If the extra is not installed.
    """
    if (config, physical_topology, binary) == (None, None, None):
        return PacketBackend(limit_s=limit_s)
    warnings.warn(
        "backend ns3: options config, physical_topology and binary are those of astra-ns3 now; "
        "name that backend",
        FutureWarning,
        stacklevel=2,
    )
    return astra_ns3(config=config, physical_topology=physical_topology, binary=binary)


def astra_ns3(
    *,
    config: str | Path | None = None,
    physical_topology: str | Path | None = None,
    binary: str | Path | None = None,
) -> AstraNs3Backend:
    """Packets on the links of a user's physical topology; see `Ns3` for the files.

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
            f"backend astra-ns3: needs ASTRA-sim's program {NS3_PROGRAM}, as option binary or in "
            f"the folder {BINARIES_VARIABLE}, and options config and physical_topology; got "
            f"{binary!r}, {config!r} and {physical_topology!r}"
        )
    return AstraNs3Backend(
        ns3=Ns3(binary=Path(binary), config=Path(config), physical_topology=Path(physical_topology))
    )


def _binaries() -> Path | None:
    folder = os.environ.get(BINARIES_VARIABLE)
    return Path(folder) if folder else None


def _check_original(case: PlacementCase, network: Backend, program: Path) -> None:
    why = why_only_ours(case, network)
    if why is not None:
        raise ValueError(f"{program}: the original cannot run this case: {why}")

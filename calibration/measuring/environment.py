"""ASTRA-sim as what judges the placements of an environment, found through entry points."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from calibration.cases.aggregation import DEFAULT_AGGREGATION, Aggregation
from calibration.cases.case import Measurement, PlacementCase
from calibration.measuring.measure import TIMEOUT_S, measure_case
from calibration.packet.numbers import network_numbers
from calibration.packet.process import ns3_version
from calibration.reference.astra_config import Backend, network_config, require_queues
from calibration.reference.export import why_only_ours
from calibration.reference.reference_programs import program_in
from des.base.checks import require_positive
from des.base.lazy import lazy_imports
from des.job.workload import Workload
from des.plan.plan import Plan
from des.world.topology import Topology

with lazy_imports(__name__):
    from calibration.packet import measure_packets

BINARIES_VARIABLE = "ASTRA_SIM_BIN"
"""Environment variable with the folder of the original's programs; without it our engine runs."""


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
    network_aggregation: Aggregation = DEFAULT_AGGREGATION
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


def unaware(*, network_aggregation: Aggregation = DEFAULT_AGGREGATION) -> AnalyticalBackend:
    """Messages never meet; by the original's program where `BINARIES_VARIABLE` is set."""
    return AnalyticalBackend(
        network="unaware", network_aggregation=network_aggregation, binaries=_binaries()
    )


def aware(*, network_aggregation: Aggregation = DEFAULT_AGGREGATION) -> AnalyticalBackend:
    """Messages queue for links; by the original's program where `BINARIES_VARIABLE` is set."""
    return AnalyticalBackend(
        network="aware", network_aggregation=network_aggregation, binaries=_binaries()
    )


def pairwise() -> AnalyticalBackend:
    """Messages queue for links of their own figures, which only our engine knows."""
    return AnalyticalBackend(network="pairwise")


def ns3(*, limit_s: float = TIMEOUT_S) -> PacketBackend:
    """Packets of the world's own links, by the ns-3 of the extra ``ns3``.

    TCP's settings are those of the world, ``transport.packets``.

    Parameters
    ----------
    limit_s
        Most time that ns-3 may take until its next answer. [s]

    Raises
    ------
    ReferenceRunError
        If the extra is not installed.
    """
    return PacketBackend(limit_s=limit_s)


def _binaries() -> Path | None:
    folder = os.environ.get(BINARIES_VARIABLE)
    return Path(folder) if folder else None


def _check_original(case: PlacementCase, network: Backend, program: Path) -> None:
    why = why_only_ours(case, network)
    if why is not None:
        raise ValueError(f"{program}: the original cannot run this case: {why}")

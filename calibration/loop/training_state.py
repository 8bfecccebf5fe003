"""Subject of the calibration during a training, and its reference."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from calibration.cases.aggregation import DEFAULT_AGGREGATION, Aggregation
from calibration.cases.case import PlacementCase
from calibration.cases.sampler import Purpose, Sampler
from calibration.cases.settings import PolicyPlans, Regime, WorkloadFamily
from calibration.fit.fit import require_enough
from calibration.loop.region import Choices
from calibration.packet.numbers import network_numbers
from calibration.packet.process import ns3_version
from calibration.reference.astra_config import Backend, network_config, require_queues
from calibration.reference.export import why_only_ours
from calibration.reference.reference_programs import program_in
from des.base.checks import require_count, require_seed
from des.job.workload import Workload
from des.plan.plan import Plan
from des.world.topology import Topology

LoopBackend = Backend | Literal["ns3"]
"""References that a training can be calibrated by."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A world and a workload that are trained on, and how they are calibrated.

    Parameters
    ----------
    topology
        The world; each placement meets an epoch of it.
    workload, schedule
        Workload and pipeline schedule of the training.
    family
        Distribution of stratified placements. It should hold the workload, and other message
        sizes, by which bandwidths and latencies can be told apart.
    backend, aggregation
        Network of the reference, and how unequal links become one where it knows no others.
    binaries
        Folder of the original's programs; None means our own engine.
    num_placements, num_probed
        Placements that factors are fitted to, and that they are tested on in between.
    seed
        Of all that is drawn.
    store
        File of the runs of the reference, none of which is repeated; None keeps none.

    Raises
    ------
    ValueError
        If a field is out of range, there are fewer placements than a fit needs, or the reference
        cannot run the world or the plans.
    ReferenceRunError
        If the reference is not installed.
    """

    topology: Topology
    workload: Workload
    schedule: str
    family: WorkloadFamily
    backend: LoopBackend = "pairwise"
    aggregation: Aggregation = DEFAULT_AGGREGATION
    binaries: Path | None = None
    num_placements: int = 32
    num_probed: int = 8
    seed: int = 0
    store: Path | None = None

    def __post_init__(self) -> None:
        require_seed("calibration", "seed", self.seed)
        require_count("calibration", "num_probed", self.num_probed)
        require_count("calibration", "num_placements", self.num_placements)
        require_enough(self.num_placements)
        case = self._sampler("fit", 0, ()).draw(0).case
        if self.backend == "ns3":
            ns3_version()
            require_queues(self.topology, "ns3")
            network_numbers(self.topology)
            return
        network_config(case, self.backend, self.aggregation)
        if self.binaries is not None:
            program_in(self.binaries, self.backend)
            why = why_only_ours(case, self.backend)
            if why is not None:
                raise ValueError(f"{self.binaries}: the original cannot run what is trained: {why}")

    @property
    def reference(self) -> str:
        """Name of the reference: the network, and our engine or the name of a program."""
        if self.backend == "ns3":
            packets = self.topology.transport.packets
            return f"ns3, {packets.congestion}, {packets.connections} connections"
        by = "our engine" if self.binaries is None else program_in(self.binaries, self.backend).name
        return f"{self.backend} by {by}"

    def cases(self, purpose: Purpose, number: int, choices: Choices) -> list[PlacementCase]:
        """Draw the placements of a calibration.

        Parameters
        ----------
        purpose
            To fit half of them are the policy's and half stratified; to check all are the policy's.
            No case is ever drawn for both.
        number
            Of the calibration; each has placements of its own.
        choices
            Plans of the current policy; without any, all placements are stratified.
        """
        sampler = self._sampler(purpose, number, choices)
        num = self.num_placements if purpose == "fit" else self.num_probed
        return [sampler.draw(position).case for position in range(num)]

    def _sampler(self, purpose: Purpose, number: int, choices: Choices) -> Sampler:
        (seed,) = np.random.SeedSequence((self.seed, number)).generate_state(1, np.uint64)
        return Sampler(
            topology=self.topology,
            family=self.family,
            regime=Regime(),
            seed=int(seed) >> 1,
            purpose=purpose,
            policy=self._policy_plans(choices) if choices else None,
            policy_fraction=0.5 if purpose == "fit" else 1.0,
        )

    def _policy_plans(self, choices: Choices) -> PolicyPlans:
        return PolicyPlans(
            workload=self.workload,
            plans=tuple(Plan(placement=one, schedule=self.schedule) for one, _ in choices),
            weights=tuple(float(count) for _, count in choices),
        )

"""The level inside the domains: how long its decisions take, alone and behind those across."""

import time
from dataclasses import replace

import numpy as np

from agents.decision.situation import Decision, Scheduler, Situation
from agents.decision.training_job import TrainingJob
from agents.hi_ppo.coordinator import NoValidPlanError
from agents.hi_ppo.hierarchy import Hierarchy
from agents.hi_ppo.known_gpus import gpus_of_domains
from agents.hi_ppo.local.decide import LocalAgent
from agents.hi_ppo.local.draws import draw_case
from des import InfeasiblePlacementError, Topology
from des.devices.gpus import GpuTopology
from des.devices.servers import draw_server

INTRA, VALIDATION = "intra_domain", "complete_validation"
"""Parts of `agents.decision.situation.Decision.response_s`: decisions of all domains, and the
validation of the complete plan."""


class CompletePlanScheduler:
    """Decides complete plans, and hands on the part across domains as a scheduler does.

    Where no complete plan can be used, the level across domains decides once more alone.

    Attributes
    ----------
    num_misfits
        Decisions without a complete plan that fits and agrees, not even an earlier one.
    """

    def __init__(self, scheduler: Scheduler, agent: LocalAgent, seed: int) -> None:
        self._scheduler, self._agent, self._seed = scheduler, agent, seed
        self._hierarchy: Hierarchy | None = None
        self._names: tuple[str, ...] = ()
        self.num_misfits = 0

    def begin(self) -> None:
        """Forget what was decided and seen; the servers stay."""
        if self._hierarchy is None:
            self._scheduler.begin()
        else:
            self._hierarchy.begin()

    @property
    def num_fallbacks(self) -> int:
        """Decisions in which an earlier plan stays as the new one cannot be used."""
        return 0 if self._hierarchy is None else self._hierarchy.counts.fallbacks

    def decide(self, situation: Situation) -> Decision:
        """Decide on both levels and validate the complete plan."""
        hierarchy = self._of(situation.topology)
        job = TrainingJob.of(situation.workload)
        try:
            complete = hierarchy.decide(situation, job)
        except (InfeasiblePlacementError, NoValidPlanError):
            self.num_misfits += 1
            return self._scheduler.decide(situation)
        response_s = {
            **complete.decision.response_s,
            INTRA: complete.response_s[INTRA],
            VALIDATION: complete.response_s["validation"],
        }
        return replace(complete.decision, response_s=response_s)

    def _of(self, topology: Topology) -> Hierarchy:
        """Return the hierarchy for worlds of these domains, see `servers_of`."""
        names = tuple(domain.name for domain in topology.domains)
        if self._hierarchy is None or names != self._names:
            servers = servers_of(topology, np.random.default_rng(self._seed))
            self._hierarchy = Hierarchy(self._scheduler, self._agent, servers)
            self._names = names
        return self._hierarchy


def servers_of(topology: Topology, rng: np.random.Generator) -> tuple[GpuTopology | None, ...]:
    """Servers of the domains: those of a file, else a drawn one where a domain is as large as it.

    Other domains have GPUs as `agents.decide` takes them.
    """
    drawn = [draw_server(rng) for _ in topology.domains]
    return tuple(
        known if domain.nodes is not None or domain.num_gpus != one.num_gpus else one
        for domain, one, known in zip(
            topology.domains, drawn, gpus_of_domains(topology), strict=True
        )
    )


def local_decisions_s(
    agent: LocalAgent, *, num_decisions: int, num_warm_up: int, budget_s: float, seed: int
) -> list[float]:
    """Time decisions for one domain each, on drawn cases, fewer if it gets late. [s]"""
    rng = np.random.default_rng(seed)
    seconds = list[float]()
    begin_s = time.perf_counter()
    while len(seconds) < num_decisions + num_warm_up:
        case = draw_case(rng)
        asked_s = time.perf_counter()
        agent.decide(case)
        seconds.append(time.perf_counter() - asked_s)
        if time.perf_counter() - begin_s > budget_s and len(seconds) > num_warm_up:
            break
    return seconds[num_warm_up:]

"""The level inside the domains: how long its decisions take, alone and behind those across."""

import time
from dataclasses import replace

import numpy as np

from agents.decision.situation import Decision, Scheduler, Situation
from agents.hi_ppo.local.case import TrainingJob
from agents.hi_ppo.local.decide import LocalAgent
from agents.hi_ppo.local.draws import draw_case
from agents.hi_ppo.local.together import cases_of, settle
from des import InfeasiblePlacementError
from des.devices.gpus import GpuTopology
from des.devices.servers import draw_server

INTRA = "intra_domain"
"""Part of `agents.decision.situation.Decision.response_s`: all domains together."""


class TwoLevels:
    """Lets the local agent decide for all domains of a scheduler's plans.

    The plan comes back as the scheduler made it: only the time of a complete decision matters here.

    Attributes
    ----------
    num_misfits
        Plans for which the domains had no local plans that fit and agree.
    """

    def __init__(self, scheduler: Scheduler, agent: LocalAgent, seed: int) -> None:
        self._scheduler, self._agent, self._seed = scheduler, agent, seed
        self._known = list[GpuTopology]()
        self.num_misfits = 0

    def begin(self) -> None:
        """Forget what was seen."""
        self._scheduler.begin()

    def decide(self, situation: Situation) -> Decision:
        """Decide on both levels."""
        servers = self._servers(situation)
        decision = self._scheduler.decide(situation)
        begin_s = time.perf_counter()
        job = TrainingJob(
            model=situation.workload.name, num_sequences=situation.workload.num_microbatches
        )
        cases = cases_of(situation.topology, decision.plan, job, servers)
        try:
            settle(self._agent, cases)
        except InfeasiblePlacementError:
            self.num_misfits += 1
        took_s = time.perf_counter() - begin_s
        return replace(decision, response_s={**decision.response_s, INTRA: took_s})

    def _servers(self, situation: Situation) -> list[GpuTopology]:
        """A server for each domain, the same in every epoch: drawn when they are first needed."""
        num_domains = situation.topology.num_domains
        if len(self._known) < num_domains:
            rng = np.random.default_rng(self._seed)
            self._known = [draw_server(rng) for _ in range(num_domains)]
        return self._known[:num_domains]


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

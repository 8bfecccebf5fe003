"""Plans that a coordinator remembers, and what all of them take on a network."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from agents.decision.reserved_memory import leave_reserved_memory
from agents.decision.situation import Situation
from agents.judge.candidates import CostObjective
from agents.judge.look_ahead import PlanJudge
from agents.judge.moves import change_times
from agents.judge.steady_judge import RelayedJob
from agents.judge.step_times import step_wan_bytes
from agents.replanning.plan_costs import Changes, PlanTimes, state_bytes_of_layers, ways_of
from des import Plan, Topology
from des.compiled.many.layout import Real, Small
from des.compiled.many.steady import Job
from des.costs.message_times import direct_links


class KnownPlans:
    """Plans of one job, each once; what does not change with the network is worked out once a plan.

    Attributes
    ----------
    plans
        In the order in which they came.
    base_s
        Iteration times at base figures, (C,); ``inf`` where a plan does not work there. [s]
    cost_bytes
        Bytes of an iteration over WAN links, (C,). [bytes]
    """

    def __init__(self, judge: PlanJudge, base: Topology, plans: Sequence[Plan] = ()) -> None:
        self.judge, self.base = judge, base
        self.plans: tuple[Plan, ...] = ()
        self.base_s: Real = np.empty(0)
        self.cost_bytes: Real = np.empty(0)
        self._base_job = judge.job_of(base)
        self._row: dict[Plan, int] = {}
        self._times = PlanTimes(judge)
        self._domains: Small = np.empty((0, judge.workload.num_layers), dtype=np.int32)
        self._layer_bytes = state_bytes_of_layers(judge.workload)
        self.add(plans)

    def __len__(self) -> int:
        return len(self.plans)

    def __contains__(self, plan: Plan) -> bool:
        return plan in self._row

    def add(self, plans: Sequence[Plan]) -> None:
        """Take in those of some plans that are new.

        Raises
        ------
        ValueError
            If a plan does not match the job or the domains.
        """
        new = [plan for plan in dict.fromkeys(plans) if plan not in self._row]
        if not new:
            return
        for plan in new:
            plan.check_against(self.base, self.judge.workload)
        first, workload = len(self.plans), self.judge.workload
        self._row |= {plan: first + at for at, plan in enumerate(new)}
        self.plans += tuple(new)
        self._times.add(new)
        base_s = self._times.on(self.base, self._base_job, since=first)
        self.base_s = np.append(self.base_s, base_s)
        sent = step_wan_bytes(workload, new)
        self.cost_bytes = np.append(self.cost_bytes, sent)
        domains = np.array([plan.placement.domain_of_layer for plan in new], dtype=np.int32)
        self._domains = np.concatenate([self._domains, domains])

    def row_of(self, plan: Plan) -> int:
        """Row of a plan among the known ones; `KeyError` if it is not known."""
        return self._row[plan]

    def job_of(self, situation: Situation) -> Job:
        """Say what stages and borders take now, with the memory that other jobs leave."""
        return self.judge.job_of(leave_reserved_memory(situation))

    def times_s(self, situation: Situation, job: Job) -> Real:
        """Mean step times of all plans now, (C,); ``inf`` where one does not work. [s]

        ``job`` is that of `job_of`.
        """
        return self._times.on(leave_reserved_memory(situation), job)

    def costs(self, aim: CostObjective, times_s: Real) -> Real:
        """Costs of plans (C,) of these iteration times: `agents.judge.candidates.CostObjective`."""
        costs: Real = aim.time_weight * np.log(times_s)
        if aim.toll_weight > 0.0:
            tolls = [
                sum(float(aim.tolls[one.domain, other.domain]) for one, other in pairwise(stages))
                for stages in (plan.placement.stages for plan in self.plans)
            ]
            costs = costs + aim.toll_weight * np.log1p(tolls)
        return np.where(np.isfinite(times_s), costs, np.inf)

    def changes(self, situation: Situation, job: Job, sources: Sequence[Plan]) -> tuple[Real, Real]:
        """Time [s] and bytes of all changes from some of the plans to all, (S, C) each.

        ``job`` is that of `job_of`. `agents.replanning.plan_costs.Changes` works them out
        where links are not plain or plans have several replicas.
        """
        pays = situation.replacement.pays_bytes
        rows = np.array([self._row[plan] for plan in sources])
        moved_bytes = np.zeros((len(rows), len(self.plans)))
        is_simulated = isinstance(job, RelayedJob) or any(plan.replicas for plan in self.plans)
        if pays and (is_simulated or self.judge.corrections.transport is not None):
            return self._simulate_changes(situation, sources)
        if pays:
            old, new = self._domains[rows], self._domains
            ways = ways_of(old, new, self.judge.num_domains, self._layer_bytes, moved_bytes)
            move_s = np.empty(moved_bytes.shape)
            change_times(
                ways,
                *direct_links(situation.topology, self.judge.corrections),
                float(situation.corrections.message_overhead_s),
                float(situation.replacement.restart_s),
                move_s,
            )
        else:
            move_s = np.full(moved_bytes.shape, float(situation.replacement.restart_s))
        move_s[np.arange(len(rows)), rows] = 0.0
        return move_s, moved_bytes

    def _simulate_changes(self, situation: Situation, sources: Sequence[Plan]) -> tuple[Real, Real]:
        topology = situation.topology
        changes = Changes(
            self.judge.workload,
            self.plans,
            topology.num_domains,
            situation.replacement,
            sources=sources,
        )
        return changes.times_s(topology, situation.corrections), changes.moved_bytes

"""One decision for one network, as a value that other schedulers can read."""

from dataclasses import dataclass

from agents.decision.situation import Decision, Situation
from agents.decision.training_job import TrainingJob
from agents.hi_ppo.coordinator import Coordinator, coordinator_of
from agents.hi_ppo.explanation import Explanation, explain
from agents.hi_ppo.fallback import FALLBACK_BUDGET, MOST_SEARCHED
from agents.hi_ppo.hierarchy import CompleteDecision, Hierarchy
from agents.hi_ppo.known_gpus import gpus_of_domains
from agents.hi_ppo.local.case import MOST_LOCAL_GPUS, MOST_LOCAL_SERVERS
from agents.hi_ppo.local.decide import LocalAgent
from agents.hi_ppo.policies import Policies
from agents.replanning.plan_costs import Changes
from agents.trainers.ideal import IDEAL
from des import Plan
from des.compiled.simulate import simulate_compiled
from des.plan.plan_texts import placement_text


@dataclass(frozen=True, kw_only=True)
class DecisionReport:
    """A decision with its times, warnings and reasons.

    Attributes
    ----------
    iteration_s
        On the network as it is; of the complete plan, where both levels have decided. [s]
    change_s
        For which the training stands still to change to the plan. [s]
    warnings
        Figures outside the range of training, with that range.
    overruled
        The plan that a bound on the slowdown has ruled out, and the policies would have taken.
    overruled_iteration_s
        Of that plan on the network as it is, each domain as one device; None where there is none.
        [s]
    complete
        Both levels' plan; None where only the level across domains has decided.
    across_iteration_s
        Of the plan across domains, each domain as one device. [s]
    """

    decision: Decision
    across_iteration_s: float
    iteration_s: float
    change_s: float
    utilisation: float
    communication_cost_bytes: float
    warnings: tuple[str, ...]
    explanation: Explanation | None
    overruled: Plan | None = None
    overruled_iteration_s: float | None = None
    complete: CompleteDecision | None = None

    def as_dict(self, situation: Situation) -> dict[str, object]:
        """Plain content, for JSON; domains by name."""
        plan, names = self.decision.plan, tuple(one.name for one in situation.topology.domains)
        local = {} if self.complete is None else self.complete.local
        stages = [
            {
                "domain": names[stage.domain],
                "first_layer": stage.first_layer,
                "num_layers": stage.num_layers,
                **(
                    {} if names[stage.domain] not in local else local[names[stage.domain]].as_dict()
                ),
            }
            for stage in plan.placement.stages
        ]
        return {
            "trainer": IDEAL.name,
            "placement": placement_text(plan.placement, names),
            "stages": stages,
            "schedule": plan.schedule,
            **self._job_as_dict(),
            "level": self.decision.level,
            "is_fallback": self.decision.is_fallback
            if self.complete is None
            else self.complete.is_fallback,
            "iteration_s": self.iteration_s,
            "change_s": self.change_s,
            "utilisation": self.utilisation,
            "communication_cost_bytes": self.communication_cost_bytes,
            "warnings": list(self.warnings),
            "response_ms": {name: 1e3 * seconds for name, seconds in self._response_s().items()},
            **self._overruled_as_dict(names),
            **({} if self.explanation is None else {"why": self.explanation.as_dict()}),
        }

    def _job_as_dict(self) -> dict[str, object]:
        """Settings that all domains of a complete plan share, for JSON."""
        if self.complete is None:
            return {}
        setting = next(iter(self.complete.local.values())).setting
        return {
            "microbatch_size": setting.microbatch_size,
            "recomputation": setting.recomputation,
            "across_iteration_s": self.across_iteration_s,
        }

    def _response_s(self) -> dict[str, float]:
        """Parts of the level across domains, then of the complete decision. [s]"""
        across = dict(self.decision.response_s)
        if self.complete is None:
            return across
        whole = self.complete.response_s
        return {
            **across,
            "inter_domain": whole["inter_domain"],
            "intra_domain": whole["intra_domain"],
            "complete_validation": whole["validation"],
            "total": whole["total"],
        }

    def _overruled_as_dict(self, names: tuple[str, ...]) -> dict[str, object]:
        if self.overruled is None:
            return {}
        return {
            "overruled": {
                "placement": placement_text(self.overruled.placement, names),
                "schedule": self.overruled.schedule,
                "iteration_s": self.overruled_iteration_s,
            }
        }


def decide_by_policies(
    situation: Situation,
    policies: Policies,
    *,
    explains: bool = False,
    is_warm: bool = True,
    most_slowdown: float | None = None,
    local: LocalAgent | None = None,
) -> DecisionReport:
    """Decide once, with nothing known of what the network did before.

    For a series of decisions keep a `agents.hi_ppo.hierarchy.Hierarchy`, or a
    `agents.hi_ppo.coordinator.Coordinator` for the level across domains alone; they remember.

    Parameters
    ----------
    explains
        Whether to say what limits the plan, see `agents.hi_ppo.explanation.explain`.
    is_warm
        Whether to decide twice and report the second time, so that response times are those of a
        process that has decided before.
    most_slowdown
        A bound on iteration times, see `agents.hi_ppo.coordinator.Coordinator`; None: no bound.
    local
        Decides inside the domains, whose GPUs are joined by the inner network of the world, all
        alike. None: the level across domains decides alone.

    Raises
    ------
    InfeasiblePlacementError
        If no plan fits, naming what is lacking.
    ValueError
        If a figure is not a number, the last plan does not match the world, ``most_slowdown`` is
        not positive, or a local agent is to decide for a workload that `des.build_workload` did not
        make.
    """
    if situation.last_plan is not None:
        situation.last_plan.check_against(situation.topology, situation.workload)
    coordinator = coordinator_of(policies, most_slowdown)
    decision, complete = _decide(coordinator, local, situation, is_warm=is_warm)
    corrections = situation.corrections
    across = simulate_compiled(situation.topology, situation.workload, decision.plan, corrections)
    topology, workload, plan, result = (
        (situation.topology, situation.workload, decision.plan, across)
        if complete is None
        else (
            complete.topology,
            complete.workload,
            complete.plan,
            simulate_compiled(complete.topology, complete.workload, complete.plan, corrections),
        )
    )
    overruled = coordinator.overruled
    return DecisionReport(
        decision=decision,
        across_iteration_s=across.makespan_s,
        iteration_s=result.makespan_s,
        change_s=_change_s(situation, decision),
        utilisation=result.utilisation,
        communication_cost_bytes=result.communication_cost_bytes,
        warnings=(*_outside(coordinator), *_by_rule(complete)),
        explanation=explain(topology, workload, plan, corrections) if explains else None,
        overruled=overruled,
        overruled_iteration_s=None
        if overruled is None
        else simulate_compiled(
            situation.topology, situation.workload, overruled, corrections
        ).makespan_s,
        complete=complete,
    )


def _decide(
    coordinator: Coordinator, local: LocalAgent | None, situation: Situation, *, is_warm: bool
) -> tuple[Decision, CompleteDecision | None]:
    """Decide at one level or at both, once or, to be warm, twice."""
    if local is None:
        decision = coordinator.decide(situation)
        if is_warm:
            coordinator.begin()
            decision = coordinator.decide(situation)
        return decision, None
    job = TrainingJob.of(situation.workload)
    hierarchy = Hierarchy(coordinator, local, gpus_of_domains(situation.topology))
    complete = hierarchy.decide(situation, job)
    if is_warm:
        hierarchy.begin()
        complete = hierarchy.decide(situation, job)
    return complete.decision, complete


def _outside(coordinator: Coordinator) -> tuple[str, ...]:
    """Warnings of what the policies were not trained on."""
    return tuple(
        f"{misfit}, the range that the policies were trained on; plans of search "
        f"(up to {MOST_SEARCHED} domains with at most {FALLBACK_BUDGET} judged) were considered too"
        for misfit in coordinator.misfits
    )


def _by_rule(complete: CompleteDecision | None) -> tuple[str, ...]:
    """Warnings of domains whose GPUs the local agent does not know one by one."""
    if complete is None:
        return ()
    return tuple(
        f"domain {name}: parallelism is by rule (the quickest by the costs of the simulator), as "
        f"the policy was trained on domains of at most {MOST_LOCAL_SERVERS} servers of 1, 2, 4 or "
        f"{MOST_LOCAL_GPUS} GPUs that are known one by one, or of one server of at most "
        f"{MOST_LOCAL_GPUS}"
        for name, decision in complete.local.items()
        if decision.is_by_rule
    )


def _change_s(situation: Situation, decision: Decision) -> float:
    if situation.last_plan is None:
        return 0.0
    changes = Changes(
        situation.workload,
        [decision.plan],
        situation.topology.num_domains,
        situation.replacement,
        sources=[situation.last_plan],
    )
    return float(changes.times_s(situation.topology, situation.corrections)[0, 0])

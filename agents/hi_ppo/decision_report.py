"""One decision for one network, as a value that other schedulers can read."""

from dataclasses import dataclass

from agents.decision.situation import Decision, Situation
from agents.hi_ppo.coordinator import QUICK, Coordinator
from agents.hi_ppo.explanation import Explanation, explain
from agents.hi_ppo.fallback import FALLBACK_BUDGET
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.policies import Policies
from agents.replanning.changes import Changes
from des import Plan
from des.compiled.simulate import simulate_compiled


@dataclass(frozen=True, kw_only=True)
class DecisionReport:
    """What was decided, what it takes, and why.

    Attributes
    ----------
    iteration_s
        On the network as it is. [s]
    change_s
        For which the training stands still to change to the plan. [s]
    warnings
        What the policies have not learnt on, with the range that they have.
    overruled
        The plan that a bound on the slowdown has ruled out, and the policies would have taken.
    overruled_iteration_s
        Of that plan on the network as it is; None where there is none. [s]
    """

    decision: Decision
    iteration_s: float
    change_s: float
    utilisation: float
    communication_cost_bytes: float
    warnings: tuple[str, ...]
    explanation: Explanation | None
    overruled: Plan | None = None
    overruled_iteration_s: float | None = None

    def as_dict(self, situation: Situation) -> dict[str, object]:
        """Plain content, for JSON; domains by name."""
        plan, names = self.decision.plan, tuple(one.name for one in situation.topology.domains)
        stages = [
            {
                "domain": names[stage.domain],
                "first_layer": stage.first_layer,
                "num_layers": stage.num_layers,
            }
            for stage in plan.placement.stages
        ]
        return {
            "placement": _written(plan, names),
            "stages": stages,
            "schedule": plan.schedule,
            "level": self.decision.level,
            "is_fallback": self.decision.is_fallback,
            "iteration_s": self.iteration_s,
            "change_s": self.change_s,
            "utilisation": self.utilisation,
            "communication_cost_bytes": self.communication_cost_bytes,
            "warnings": list(self.warnings),
            "response_ms": {
                name: 1e3 * seconds for name, seconds in self.decision.response_s.items()
            },
            **self._overruled_as_dict(names),
            **({} if self.explanation is None else {"why": self.explanation.as_dict()}),
        }

    def _overruled_as_dict(self, names: tuple[str, ...]) -> dict[str, object]:
        if self.overruled is None:
            return {}
        return {
            "overruled": {
                "placement": _written(self.overruled, names),
                "schedule": self.overruled.schedule,
                "iteration_s": self.overruled_iteration_s,
            }
        }


def decide(
    situation: Situation,
    policies: Policies,
    *,
    explains: bool = False,
    is_warm: bool = True,
    most_slowdown: float | None = None,
) -> DecisionReport:
    """Decide once, with nothing known of what the network did before.

    For a series of decisions keep a `agents.hi_ppo.coordinator.Coordinator`, which remembers.

    Parameters
    ----------
    explains
        Whether to say what limits the plan, see `agents.hi_ppo.explanation.explain`.
    is_warm
        Whether to decide twice and report the second time, so that response times are those of a
        process that has decided before.
    most_slowdown
        A bound on iteration times, see `agents.hi_ppo.coordinator.Coordinator`; None: no bound.

    Raises
    ------
    InfeasiblePlacementError
        If no plan fits, naming what is lacking.
    ValueError
        If a figure is not a number, the last plan does not match the world, or ``most_slowdown``
        is not positive.
    """
    if situation.last_plan is not None:
        situation.last_plan.check_against(situation.topology, situation.workload)
    coordinator = coordinator_of(policies, most_slowdown)
    decision = coordinator.decide(situation)
    if is_warm:
        coordinator.begin()
        decision = coordinator.decide(situation)
    topology, workload = situation.topology, situation.workload
    result = simulate_compiled(topology, workload, decision.plan, situation.corrections)
    overruled = coordinator.overruled
    warnings = tuple(
        f"{misfit}, the range that the policies were trained on; plans of search with at most "
        f"{FALLBACK_BUDGET} judged were considered too"
        for misfit in coordinator.misfits
    )
    return DecisionReport(
        decision=decision,
        iteration_s=result.makespan_s,
        change_s=_change_s(situation, decision),
        utilisation=result.utilisation,
        communication_cost_bytes=result.communication_cost_bytes,
        warnings=warnings,
        explanation=explain(topology, workload, decision.plan, situation.corrections)
        if explains
        else None,
        overruled=overruled,
        overruled_iteration_s=None
        if overruled is None
        else simulate_compiled(topology, workload, overruled, situation.corrections).makespan_s,
    )


def coordinator_of(policies: Policies, most_slowdown: float | None = None) -> Coordinator:
    """Put a coordinator together from trained policies, with a bound on iteration times or none."""
    return Coordinator(
        Proposer(policies.placement, look_ahead=QUICK),
        policies.moves,
        trained_range=policies.trained_range,
        most_slowdown=most_slowdown,
    )


def _written(plan: Plan, names: tuple[str, ...]) -> str:
    """A placement as it is read, such as East*28,West*52."""
    return ",".join(f"{names[one.domain]}*{one.num_layers}" for one in plan.placement.stages)


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

"""One decision for one network, as a value that other schedulers can read."""

from dataclasses import dataclass

from agents.epochs.changes import Changes
from agents.epochs.situation import Decision, Situation
from agents.explanation import Explanation, explain
from agents.hi_ppo.coordinator import QUICK, Coordinator
from agents.hi_ppo.fallback import FALLBACK_BUDGET
from agents.hi_ppo.policies import Policies
from agents.hi_ppo.proposals import Proposer
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
    """

    decision: Decision
    iteration_s: float
    change_s: float
    utilisation: float
    communication_cost_bytes: float
    warnings: tuple[str, ...]
    explanation: Explanation | None

    def as_dict(self, situation: Situation) -> dict[str, object]:
        """Plain content, for JSON; domains by name."""
        plan, names = self.decision.plan, [one.name for one in situation.topology.domains]
        stages = [
            {
                "domain": names[stage.domain],
                "first_layer": stage.first_layer,
                "num_layers": stage.num_layers,
            }
            for stage in plan.placement.stages
        ]
        return {
            "placement": ",".join(f"{one['domain']}*{one['num_layers']}" for one in stages),
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
            **({} if self.explanation is None else {"why": self.explanation.as_dict()}),
        }


def decide(
    situation: Situation, policies: Policies, *, explains: bool = False, is_warm: bool = True
) -> DecisionReport:
    """Decide once, with nothing known of what the network did before.

    For a series of decisions keep a `agents.hi_ppo.coordinator.Coordinator`, which remembers.

    Parameters
    ----------
    explains
        Whether to say what limits the plan, see `agents.explanation.explain`.
    is_warm
        Whether to decide twice and report the second time, so that response times are those of a
        process that has decided before.

    Raises
    ------
    InfeasiblePlacementError
        If no plan fits, naming what is lacking.
    ValueError
        If a figure is not a number, or the last plan does not match the world.
    """
    if situation.last_plan is not None:
        situation.last_plan.check_against(situation.topology, situation.workload)
    coordinator = coordinator_of(policies)
    decision = coordinator.decide(situation)
    if is_warm:
        coordinator.begin()
        decision = coordinator.decide(situation)
    result = simulate_compiled(
        situation.topology, situation.workload, decision.plan, situation.corrections
    )
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
        explanation=explain(
            situation.topology, situation.workload, decision.plan, situation.corrections
        )
        if explains
        else None,
    )


def coordinator_of(policies: Policies) -> Coordinator:
    """Put a coordinator together from trained policies."""
    return Coordinator(
        Proposer(policies.placement, look_ahead=QUICK),
        policies.moves,
        trained_range=policies.trained_range,
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

"""Inside of the domains of a chosen pipeline: parallelism and GPUs, by the local level."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agents.answer.question import Question
from agents.decision.situation import Situation
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import JudgedPlan
from agents.hi_ppo.known_gpus import gpus_of_domains
from agents.hi_ppo.local.case import DomainCase
from agents.hi_ppo.local.decide import LocalAgent, LocalDecision
from agents.hi_ppo.local.together import (
    bound_topology,
    cases_of,
    settlements,
    with_local,
    workload_of,
)
from agents.hi_ppo.validation import require_free, require_valid
from des import InfeasiblePlacementError, Plan, Topology, Workload
from des.compiled.simulate import simulate_compiled

_HELD_AS = "1f1b"
"""Schedule by which domains share their GPUs where the plan's halves the backward passes."""


@dataclass(frozen=True, kw_only=True)
class InsideDomains:
    """Decisions of the local level for the domains of a pipeline.

    Attributes
    ----------
    local
        Decisions by the name of the domain, from the input on.
    step_s
        Time of a step of the plan as it is bound, with the sums and borders inside domains, which
        the level across domains takes to cost nothing. [s]
    """

    local: Mapping[str, LocalDecision]
    topology: Topology
    workload: Workload
    plan: Plan
    step_s: float


def bind_inside(
    question: Question, judged: JudgedPlan, agent: LocalAgent
) -> tuple[InsideDomains | None, str]:
    """Share the GPUs inside the domains of a plan, or say why that cannot be done.

    Only pipelines that visit each domain once are bound; microbatches and recomputation are those
    that the domains agree on.
    """
    plan = judged.plan
    used = [stage.domain for stage in plan.placement.stages]
    if plan.replicas or len(set(used)) < len(used):
        return None, "the local level binds one pipeline that visits each domain once"
    situation = question.situation(judged.workload)
    if any(situation.topology.domains[domain].kernels is not None for domain in used):
        return None, "the local level knows layer times by fraction of the peak alone"
    is_plain = plan.schedule.split("_")[0] in ("gpipe", "1f1b")
    held = plan if is_plain else replace(plan, schedule=_HELD_AS)
    job, loads = question.problem.job, question.loads
    gpus = gpus_of_domains(situation.topology)
    found, failure = list[InsideDomains](), ""
    try:
        cases = cases_of(
            situation.topology, held, job, gpus, loads=loads, corrections=situation.corrections
        )
        for settlement in settlements(agent, situation.topology, plan, cases):
            try:
                found.append(_bound(situation, job, plan, cases, settlement.decisions))
            except InfeasiblePlacementError as error:
                failure = failure or str(error)
    except InfeasiblePlacementError as error:
        failure = str(error)
    if not found:
        return None, f"no sharing of the GPUs fits: {failure}"
    return min(found, key=lambda one: one.step_s), ""


def _bound(
    situation: Situation,
    job: TrainingJob,
    plan: Plan,
    cases: Sequence[DomainCase],
    decisions: Sequence[LocalDecision],
) -> InsideDomains:
    """Put decisions into a plan and simulate it as a whole; errors are those of `require_valid`."""
    for case, decision in zip(cases, decisions, strict=True):
        require_free(case, decision)
    topology = bound_topology(situation.topology, plan, cases, decisions)
    workload = workload_of(job, decisions)
    bound = with_local(plan, decisions, topology.num_domains)
    require_valid(replace(situation, topology=topology, workload=workload), bound)
    result = simulate_compiled(topology, workload, bound, situation.corrections)
    names = (case.domain.name for case in cases)
    return InsideDomains(
        local=dict(zip(names, decisions, strict=True)),
        topology=topology,
        workload=workload,
        plan=bound,
        step_s=result.makespan_s,
    )

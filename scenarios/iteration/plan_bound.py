"""Distance of an iteration from what no plan can be below."""

from __future__ import annotations

from des import IterationResult
from des.base.command import UsageError
from des.base.lazy import lazy_imports
from scenarios.iteration.iteration_config import Config
from scenarios.iteration.iteration_scenario import IterationScenario

with lazy_imports(__name__):
    from agents.decision import plan_space, training_job, whole_plan
    from agents.planners.bounds import step_bound


def bound_line(config: Config, scenario: IterationScenario, result: IterationResult) -> str:
    """Return a sentence with the bound, empty where none is wanted.

    Raises
    ------
    UsageError
        If the plan is none of those that the bound is about.
    ValueError
        If there is no bound for the network or the workload.
    """
    if not config.bound:
        return ""
    plan = scenario.plan
    for flag, is_other in (
        ("parallelism", bool(plan.parallelism)),
        ("activation-compression", plan.activation_compression > 1.0),
        ("synchronisation", plan.synchronisation.steps_between > 1),
        ("recomputation", config.recomputation != "flash"),
    ):
        if is_other:
            raise UsageError(f"{flag} must be the default with --bound, got another")
    size = config.microbatch_size or 1
    problem = whole_plan.WholeProblem(
        topology=scenario.topology,
        job=training_job.TrainingJob.of(scenario.workload, microbatch_size=size),
        space=plan_space.PlanSpace(
            microbatch_sizes=tuple(sorted({size, *plan_space.PlanSpace().microbatch_sizes}))
        ),
        corrections=scenario.corrections,
    )
    bound = step_bound.step_lower_bound_s(problem)
    above = result.makespan_s / bound.step_s - 1.0
    return (
        f"no plan is below {bound.step_s:.4g} s, which {bound.binds} binds (all GPUs at work and "
        f"nothing sent: {bound.work_s:.4g} s); this one is {above:.1%} above it"
    )

"""Placements given by hand, completed to what a trainer runs."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from agents.trainers.table import trainer_named
from agents.trainers.trainer import Trainer
from des import Workload
from des.base.lazy import lazy_imports
from des.plan.plan_texts import pipelines_text
from scenarios.iteration.iteration_config import Config
from scenarios.iteration.iteration_scenario import IterationScenario, given_iteration

with lazy_imports(__name__):
    from agents.decision import plan_space, trained_workload, training_job
    from agents.decision.bound_plan import BoundPlan
    from agents.search import bind
    from agents.trainers import plan_checks
    from scenarios.iteration import plan_file

FORM = "placement by hand"


def with_trainer(config: Config, given: Set[str]) -> Config:
    """Return the configuration with gradients of the trainer's type, unless that is given.

    Raises
    ------
    ValueError
        If there is no such trainer.
    """
    if config.trainer is None or config.plan is not None:
        return config
    trainer = trainer_named(config.trainer)
    if trainer.is_ideal or "gradient_precision" in given:
        return config
    return replace(config, gradient_precision=trainer.gradient_precision)


def trained_plan(config: Config) -> plan_file.FilePlan:
    """Complete the placement that flags give, for their trainer, as a decision completes it.

    A schedule, a size of microbatches, degrees and shares that are given stay; else they are those
    of the quickest plan that the trainer runs. The size that a job file names is one among others.

    Raises
    ------
    ValueError
        If a flag is wrong, the trainer cannot run the plan, or it does not fit.
    """
    scenario = given_iteration(config)
    trainer = trainer_named(str(config.trainer))
    if trainer.is_ideal:
        plan_checks.check_plan(trainer, scenario.topology, scenario.workload, scenario.plan)
        return plan_file.FilePlan(scenario=scenario, form=FORM, trainer=trainer.name)
    bound = _quickest(config, scenario, trainer)
    return plan_file.FilePlan(
        scenario=replace(scenario, workload=bound.workload, plan=bound.plan),
        form=FORM + _changes(scenario, bound),
        trainer=trainer.name,
    )


def _quickest(config: Config, scenario: IterationScenario, trainer: Trainer) -> BoundPlan:
    """The quickest bound plan in all sizes of microbatches that may be chosen."""
    is_sized = config.microbatch_size is not None and config.job is None
    workloads: tuple[Workload, ...] = (scenario.workload,)
    if not (is_sized or config.parallelism or config.shares):
        copies = range(1, 1 + max(one.num_gpus for one in scenario.topology.domains))
        sizes = sorted(
            {each * data for each in plan_space.SPACE_MICROBATCH_SIZES for data in copies}
        )
        workloads = training_job.regrouped(scenario.workload, tuple(sizes))
    found: list[BoundPlan] = []
    refusals: list[ValueError] = []
    for workload in workloads:
        binder = bind.PlanBinder(
            topology=scenario.topology.at_start(),
            workload=workload,
            trainer=trainer,
            corrections=scenario.corrections,
            model=config.model,
            schedules=trainer.schedules if config.schedule is None else (config.schedule,),
        )
        try:
            found.append(binder.bind(scenario.plan))
        except ValueError as error:
            refusals.append(error)
    if not found:
        raise refusals[0]
    return min(found, key=lambda one: one.step_s)


def _changes(scenario: IterationScenario, bound: BoundPlan) -> str:
    """Degrees of each domain, and all layers where some moved."""
    topology, plan = scenario.topology, bound.plan
    count = bound.workload.num_microbatches
    size = trained_workload.whole_shape(bound.workload).batch_size
    each = f"{plan.schedule}, {count} microbatches of {size:g}; " + "; ".join(
        f"{topology.domains[domain].name} {plan.parallelism[domain]}"
        for domain in plan_checks.domains_in_use(plan)
    )
    names = tuple(topology.index_of)
    kept = [one.domain_of_layer for one in plan.placements]
    if kept == [one.domain_of_layer for one in scenario.plan.placements]:
        return f" ({each})"
    return f" ({each}; layers {pipelines_text(plan, names)})"

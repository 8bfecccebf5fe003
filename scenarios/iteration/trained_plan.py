"""Placements given by hand, completed to what a trainer runs."""

from collections.abc import Set
from dataclasses import replace

from agents.decision.bound_plan import BoundPlan
from agents.search.bind import PlanBinder
from agents.trainers.plan_checks import check_plan, domains_in_use
from agents.trainers.table import trainer_named
from des.plan.plan_texts import pipelines_text
from scenarios.iteration.iteration_config import Config
from scenarios.iteration.iteration_scenario import IterationScenario, given_iteration
from scenarios.iteration.plan_file import FilePlan

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


def trained_plan(config: Config, given: Set[str]) -> FilePlan:
    """Complete the placement that flags give, for their trainer.

    A schedule that is given stays; else the default one stays if the trainer has it.

    Raises
    ------
    ValueError
        If a flag is wrong, the trainer cannot run the plan, or it does not fit.
    """
    scenario = given_iteration(config)
    trainer = trainer_named(str(config.trainer))
    if trainer.is_ideal:
        check_plan(trainer, scenario.topology, scenario.workload, scenario.plan)
        return FilePlan(scenario=scenario, form=FORM, trainer=trainer.name)
    binder = PlanBinder(
        topology=scenario.topology.at_start(),
        workload=scenario.workload,
        trainer=trainer,
        corrections=scenario.corrections,
        model=config.model,
        schedules=(config.schedule,) if "schedule" in given else (),
    )
    bound = binder.bind(scenario.plan)
    return FilePlan(
        scenario=replace(scenario, plan=bound.plan),
        form=FORM + _changes(scenario, bound),
        trainer=trainer.name,
    )


def _changes(scenario: IterationScenario, bound: BoundPlan) -> str:
    """Degrees of each domain, and all layers where some moved."""
    topology, plan = scenario.topology, bound.plan
    each = "; ".join(
        f"{topology.domains[domain].name} {plan.parallelism[domain]}"
        for domain in domains_in_use(plan)
    )
    names = tuple(topology.index_of)
    kept = [one.domain_of_layer for one in plan.placements]
    if kept == [one.domain_of_layer for one in scenario.plan.placements]:
        return f" ({each})"
    return f" ({each}; layers {pipelines_text(plan, names)})"

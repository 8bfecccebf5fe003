"""Job and plan that the flags of an iteration choose, and what a trainer makes of them."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import fields, replace
from typing import Any

from agents.trainers.table import trainer_named
from agents.trainers.trainer import Trainer
from des import Workload
from des.base.checks import prefixed_errors
from des.base.command import UsageError
from des.base.lazy import lazy_imports
from des.base.quantities import parse_tokens
from des.job.precision import precision_named
from des.plan.plan_texts import pipelines_text
from scenarios.iteration.iteration_config import PROG, Config
from scenarios.iteration.iteration_scenario import IterationScenario, given_iteration

with lazy_imports(__name__):
    from agents.decision import job_files, plan_space, trained_workload, training_job
    from agents.decision.bound_plan import BoundPlan
    from agents.search import bind
    from agents.trainers import plan_checks
    from scenarios.iteration import plan_file

_IN_FILE = ("model", "num_layers", "microbatches", "microbatch_size", "sequence_length")


def with_launch(config: Config, given: Set[str]) -> tuple[Config, Set[str]]:
    """Take the folder of --launch as the plan.

    Raises
    ------
    UsageError
        If --plan is given too, or there is no such folder.
    """
    if config.launch is None:
        return config, given
    if config.plan is not None:
        raise UsageError(f"--launch must come without --plan, got --plan {config.plan} too")
    if not config.launch.is_dir():
        raise UsageError(f"--launch must be a folder of eastwest launch, got {config.launch}")
    return replace(config, plan=config.launch, launch=None), {*given - {"launch"}, "plan"}


def with_job(config: Config, given: Set[str]) -> tuple[Config, str]:
    """Return the configuration with the fields of its job filled in, and a sentence on rounding.

    ``given`` are the fields that the user gave. The sentence is empty where nothing is rounded.

    Raises
    ------
    ValueError
        If the file or the tokens are wrong, or a field is given twice.
    """
    if config.job is not None:
        _refuse_given("job", _IN_FILE, given)
        job, size = job_files.read_job(config.job)
        config = _fill(config, job.in_precision(config.precision), size)
    if config.tokens_per_step is None:
        return config, ""
    if config.job is None:
        _refuse_given("tokens-per-step", ("microbatches",), given)
    size = config.microbatch_size or 1
    with prefixed_errors("tokens-per-step ", UsageError):
        tokens = parse_tokens(config.tokens_per_step)
    job = training_job.TrainingJob.of_tokens(
        config.model,
        tokens,
        config.sequence_length,
        config.num_layers,
        sizes=(size,),
        precision=precision_named(PROG, config.precision),
    )
    filled = _fill(config, job, size)
    return replace(filled, microbatch_size=config.microbatch_size), job.rounding(tokens)


def as_given(config: Config) -> Config:
    """Configuration without what its job file, or its tokens a step, say: its flags read again."""
    said = _IN_FILE if config.job else ("microbatches",) if config.tokens_per_step else ()
    values: dict[str, Any] = {one.name: one.default for one in fields(config) if one.name in said}
    return replace(config, **values)


def _fill(config: Config, job: training_job.TrainingJob, microbatch_size: int) -> Config:
    return replace(
        config,
        model=job.model,
        num_layers=job.num_layers,
        microbatches=job.num_sequences // microbatch_size,
        microbatch_size=microbatch_size,
        sequence_length=job.sequence_length,
        precision=job.precision,
    )


def _refuse_given(flag: str, fields: tuple[str, ...], given: Set[str]) -> None:
    """Refuse a field that another flag says as well."""
    twice = next((field for field in fields if field in given), None)
    if twice is not None:
        raise UsageError(
            f"{twice.replace('_', '-')} must not be given with {flag}, which says it; got both"
        )


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

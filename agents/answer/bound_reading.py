"""Reading of the files and flags of a question to a trainer."""

from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from agents.answer.config import PROG, Config
from agents.answer.reading import (
    job_of,
    loads_of,
    objective_of,
    read_networks,
    refuse_in_job,
    refuse_twice,
)
from agents.answer.run_terms import RunTerms
from agents.decision.bound_plan import BoundPlan
from agents.decision.plan_document import read_document
from agents.decision.training_job import TrainingJob
from agents.search.objective import PlanObjective
from agents.search.search import MICROBATCH_SIZES, PlanRequest
from agents.trainers.table import trainer_named
from des import Topology, Workload
from des.base.checks import prefixed_errors
from des.base.command import UsageError
from des.base.quantities import parse_tokens
from des.base.text_files import read_json
from des.job.models import layers_note
from des.plan.replacement import Replacement
from des.training.background import beside_jobs

_OF_POLICIES_ALONE = (
    *("most_slowdown", "across_only", "local_checkpoint", "base", "epoch_s"),
    *("explain", "last_schedule"),
)
"""Flags of a decision by the policies alone."""


@dataclass(frozen=True, kw_only=True)
class BoundQuestion:
    """PlanRequest, objective and plan in force of a question to a trainer."""

    request: PlanRequest
    objective: PlanObjective
    in_force: BoundPlan | None
    replacement: Replacement
    notes: tuple[str, ...]
    terms: RunTerms | None


def bound_question_of(config: Config, given: Set[str] = frozenset()) -> BoundQuestion:
    """Read the question to a trainer.

    Raises
    ------
    ValueError
        If a file, a name or a number is wrong, or a flag belongs to the policies alone.
    """
    for field in _OF_POLICIES_ALONE:
        if field in given:
            raise UsageError(
                f"{PROG}: --{field.replace('_', '-')} must be given with --trainer ideal "
                f"--deciders hi_ppo --json alone, got --trainer {config.trainer} --deciders "
                f"{config.deciders}{' --json' * config.json}"
            )
    if config.deciders == "search":
        refuse_twice("--deciders search", ("checkpoint",), given)
    trainer = trainer_named(config.trainer)
    if config.token_factor is not None and trainer.synchronisations == ("every_step",):
        raise UsageError(
            f"{PROG}: --token-factor must be left out with a trainer that leaves training "
            f"unchanged, got {config.token_factor:g} for {config.trainer}"
        )
    refuse_in_job(config, given)
    bare, _ = read_networks(config)
    job, own_size, note = job_of(config)
    trainer.require_precision(job.precision)
    sizes = tuple(sorted({*MICROBATCH_SIZES, own_size}))
    return BoundQuestion(
        request=PlanRequest(
            topology=beside_jobs(bare, loads_of(config, bare)),
            job=job,
            trainer=trainer,
            schedules=config.schedules,
            microbatch_sizes=sizes,
            token_factor=config.token_factor,
        ),
        objective=objective_of(config),
        in_force=None if config.last is None else _bound_in_force(config.last, bare, job),
        replacement=Replacement(restart_s=config.restart_s, pays_bytes=not config.restart_only),
        notes=(
            *((note,) if note else ()),
            *layers_note(job.workload(1)),
            *_sites_note(bare),
        ),
        terms=_terms(config, given),
    )


def _sites_note(topology: Topology) -> Iterator[str]:
    """Note on sites that come and go, which a plan counts on."""
    law = topology.availability
    if law is not None:
        shares = (f"{site.name} {100 * site.share_up:.0f} %" for site in law.sites)
        yield (
            f"sites come and go, up by their law: {', '.join(shares)} of the time; the plan counts "
            "on all that it uses: eastwest run --planner sampled simulates holding and leaving them"
        )


def _terms(config: Config, given: Set[str]) -> RunTerms | None:
    """Terms of the whole run, if its tokens are given."""
    if config.tokens is None:
        for field in ("gpu_hours_per_interruption", "checkpoint_s"):
            if field in given:
                raise UsageError(
                    f"{PROG}: --tokens must be given with --{field.replace('_', '-')}, got none"
                )
        return None
    with prefixed_errors(f"{PROG}: --tokens ", UsageError):
        num_tokens = parse_tokens(config.tokens)
    return RunTerms(
        num_tokens=num_tokens,
        gpu_hours_per_interruption=config.gpu_hours_per_interruption,
        checkpoint_s=config.checkpoint_s,
        restart_s=config.restart_s,
    )


def _bound_in_force(text: str, topology: Topology, job: TrainingJob) -> BoundPlan:
    """The plan of a document, for the job on a network of the same domains as it is now."""
    path = Path(text)
    if path.suffix != ".json":
        raise UsageError(
            f"{PROG}: --last must be a plan document, as --json writes it, such as plan.json; a "
            f"placement as text is for the policies alone; got {text!r}"
        )
    with prefixed_errors(f"{path}: ", UsageError):
        bound = read_document(read_json(path))
    names = [domain.name for domain in topology.domains]
    if (there := [domain.name for domain in bound.topology.domains]) != names:
        raise UsageError(
            f"{path}: world must have the domains {', '.join(names)}, got {', '.join(there)}"
        )
    if (in_force := _job_text(bound.workload)) != (own := _job_text(job.workload(1))):
        raise UsageError(f"{path}: job must be the one to decide on, {own}; got {in_force}")
    return bound


def _job_text(workload: Workload) -> str:
    return (
        f"{workload.name} of {workload.num_layers} layers with "
        f"{workload.tokens_per_iteration} tokens a step"
    )

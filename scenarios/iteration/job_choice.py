"""Job of a simulated iteration from a file, or from its tokens a step."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import fields, replace
from typing import Any

from des.base.command import UsageError
from des.base.lazy import lazy_imports
from des.base.quantities import parse_tokens
from des.job.precision import precision_named
from scenarios.iteration.iteration_config import PROG, Config

with lazy_imports(__name__):
    from agents.decision import job_files, training_job

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
        config = _filled(config, job.in_precision(config.precision), size)
    if config.tokens_per_step is None:
        return config, ""
    if config.job is None:
        _refuse_given("tokens-per-step", ("microbatches",), given)
    size = config.microbatch_size or 1
    try:
        tokens = parse_tokens(config.tokens_per_step)
    except ValueError as error:
        raise UsageError(f"tokens-per-step {error}") from error
    job = training_job.TrainingJob.of_tokens(
        config.model,
        tokens,
        config.sequence_length,
        config.num_layers,
        sizes=(size,),
        precision=precision_named(PROG, config.precision),
    )
    filled = _filled(config, job, size)
    return replace(filled, microbatch_size=config.microbatch_size), job.rounding(tokens)


def as_given(config: Config) -> Config:
    """Configuration without what its job file, or its tokens a step, say: its flags read again."""
    said = _IN_FILE if config.job else ("microbatches",) if config.tokens_per_step else ()
    values: dict[str, Any] = {one.name: one.default for one in fields(config) if one.name in said}
    return replace(config, **values)


def _filled(config: Config, job: training_job.TrainingJob, microbatch_size: int) -> Config:
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

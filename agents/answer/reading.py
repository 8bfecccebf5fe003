"""Reading of the files and flags of a question."""

from collections.abc import Set
from dataclasses import replace
from pathlib import Path

from agents.answer.config import PROG, Config
from agents.decision.job_files import read_job
from agents.decision.plan_space import SPACE_MICROBATCH_SIZES
from agents.decision.situation import Situation
from agents.decision.training_job import TrainingJob
from agents.replanning.stay_or_move import PayoffRule
from agents.search.objective import PlanObjective
from des import Plan, Topology
from des.base.checks import MOST_ITEMS, prefixed_errors, require_count, require_positive
from des.base.command import UsageError
from des.base.quantities import DURATION_S, parse_quantity, parse_tokens
from des.base.speaking import SPEAKER
from des.job.precision import precision_named
from des.plan.plan_texts import parse_pipelines
from des.plan.replacement import Replacement
from des.training.background import beside_jobs
from des.views.prices import notes_on_prices
from des.world.domain_load import DomainLoad
from des.world.files.load_files import read_loads
from des.world.site_limits import notes_on_sites
from des.worlds import EXAMPLE_JOBS

IN_JOB = ("model", "num_layers", "microbatches", "sequence_length")


def require_room(config: Config) -> None:
    """Refuse a file to write that cannot be written, before any work.

    Raises
    ------
    ValueError
        If it is given with a stream, is a folder, or its folder does not exist.
    """
    if config.out is None:
        return
    if config.stream:
        raise UsageError(f"{PROG}: --out must not be given with --stream, got both")
    if config.out.is_dir() or not config.out.parent.is_dir():
        raise UsageError(
            f"{PROG}: --out must be a file in a folder that exists, got {str(config.out)!r}"
        )


def objective_of(config: Config) -> PlanObjective:
    """Objective and limit of the flags."""
    with prefixed_errors(f"{PROG}: ", UsageError):
        return PlanObjective.parse(config.objective, config.at_most)


def rule_of(config: Config) -> PayoffRule:
    """Rule by which a plan in force is left: as soon as the horizon pays for it."""
    with prefixed_errors(f"{PROG}: --horizon ", UsageError):
        horizon_s = parse_quantity(config.horizon, DURATION_S)
        return PayoffRule(horizon_s=horizon_s)


def situation_of(config: Config, given: Set[str] = frozenset()) -> Situation:
    """Read the situation for the trained policies alone, in microbatches of one sequence.

    Raises
    ------
    ValueError
        If a file, a name or a number is wrong, or flags contradict each other.
    """
    require_positive(PROG, "epoch_s", config.epoch_s)
    _refuse_contradictions(config, given)
    bare, base = read_networks(config)
    loads, (job, _, _) = loads_of(config, bare), job_of(config)
    workload = job.workload(1)
    left = beside_jobs(bare, loads)
    domains = tuple(
        replace(one, attainable_fraction=beside.attainable_fraction)
        for one, beside in zip(bare.domains, left.domains, strict=True)
    )
    last_plan = None if config.last is None else _last_plan(config, bare)
    if last_plan is not None:
        last_plan.check_against(bare, workload)
    return Situation(
        topology=replace(bare, domains=domains),
        base=base or bare,
        workload=workload,
        epoch=0,
        epoch_s=config.epoch_s,
        replacement=Replacement(restart_s=config.restart_s, pays_bytes=not config.restart_only),
        last_plan=last_plan,
        loads=loads,
        preference=objective_of(config).preference,
    )


def _refuse_contradictions(config: Config, given: Set[str]) -> None:
    """Refuse flags that say the same twice, or that the policies alone do not use."""
    refuse_in_job(config, given)
    unused = ("tokens", "schedules", "at_most", "token_factor")
    refuse_twice("--deciders hi_ppo --json", unused, given)
    if (objective := objective_of(config)).kind not in ("time", "weights"):
        raise UsageError(
            f"{PROG}: --objective must be time or weights with --deciders hi_ppo --json, "
            f"got {objective.kind}"
        )
    if config.across_only:
        refuse_twice("--across-only", ("local_checkpoint",), given)
    if config.last is None and "last_schedule" in given and not config.stream:
        raise UsageError(f"{PROG}: --last must be given with --last-schedule, got none")


def refuse_in_job(config: Config, given: Set[str]) -> None:
    """Refuse flags that say what the job file or another flag says."""
    if config.job is not None:
        refuse_twice("--job", (*IN_JOB, "tokens_per_step"), given)
    if config.tokens_per_step is not None:
        refuse_twice("--tokens-per-step", ("microbatches",), given)


def refuse_twice(flag: str, fields: tuple[str, ...], given: Set[str]) -> None:
    """Refuse flags that must not be given together with another."""
    twice = next((field for field in fields if field in given), None)
    if twice is not None:
        raise UsageError(
            f"{PROG}: --{twice.replace('_', '-')} must not be given with {flag}, got both"
        )


def read_networks(config: Config) -> tuple[Topology, Topology | None]:
    """The network as it is now, and at base figures if they are given."""
    topology = _still_world(config, config.network)
    if not config.stream:
        SPEAKER.note(notes_on_sites(topology.domains, topology.links))
        SPEAKER.note(notes_on_prices(topology))
    if config.base is None:
        return topology, None
    base = _still_world(config, config.base)
    names = [domain.name for domain in topology.domains]
    if [domain.name for domain in base.domains] != names:
        raise UsageError(
            f"{PROG}: --base must have the domains {', '.join(names)}, "
            f"got {', '.join(domain.name for domain in base.domains)}"
        )
    return topology, base


def _still_world(config: Config, network: str) -> Topology:
    return replace(config.world(network), movement=None)


def loads_of(config: Config, topology: Topology) -> tuple[DomainLoad, ...]:
    """Loads of other jobs by domain; none where no other jobs are known."""
    if config.loads is None:
        return ()
    return read_loads(config.loads, topology)


def job_of(config: Config) -> tuple[TrainingJob, int, str]:
    """The job, the sequences of a microbatch that it names, and what was rounded."""
    job, size, note = _read_job(config)
    return replace(job, attention=config.attention), size, note


def _read_job(config: Config) -> tuple[TrainingJob, int, str]:
    """`job_of` with attention by default."""
    if config.job is not None:
        job, size = read_job(EXAMPLE_JOBS.get(config.job, Path(config.job)))
        return job.in_precision(config.precision), size, ""
    require_count(PROG, "microbatches", config.microbatches, MOST_ITEMS)
    require_count(PROG, "sequence_length", config.sequence_length)
    tokens = config.microbatches * config.sequence_length
    if config.tokens_per_step is not None:
        with prefixed_errors(f"{PROG}: --tokens-per-step ", UsageError):
            tokens = parse_tokens(config.tokens_per_step)
    job = TrainingJob.of_tokens(
        config.model,
        tokens,
        config.sequence_length,
        config.num_layers,
        sizes=SPACE_MICROBATCH_SIZES,
        precision=precision_named(PROG, config.precision),
    )
    return job, 1, job.rounding(tokens)


def _last_plan(config: Config, topology: Topology) -> Plan:
    """The pipeline in force."""
    assert config.last is not None
    names = [domain.name for domain in topology.domains]
    with prefixed_errors(f"{PROG}: --last: ", UsageError):
        placements, shares, _ = parse_pipelines(config.last, names)
    if len(placements) > 1 or shares:
        raise UsageError(
            f"{PROG}: --last must be one pipeline for --deciders hi_ppo --json, got {config.last!r}"
        )
    return Plan(placement=placements[0], schedule=config.last_schedule)

"""Reading of the files and flags of a question."""

from collections.abc import Set
from dataclasses import replace
from pathlib import Path

from agents.answer.config import PROG, Config
from agents.answer.question import PlanInForce, Question
from agents.decision.families import FAMILIES, SYNCHRONOUS, Family
from agents.decision.job_files import read_job
from agents.decision.plan_space import SPACE_MICROBATCH_SIZES, PlanSpace
from agents.decision.situation import Preference, Situation
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.search.objective import PlanObjective
from des import EVERY_STEP, GradientExchange, Plan, Topology
from des.base.checks import MOST_ITEMS, require_count, require_positive
from des.base.command import UsageError
from des.base.quantities import parse_tokens
from des.base.speaking import SPEAKER
from des.job.models import layers_note
from des.job.precision import precision_named
from des.plan.plan_texts import parse_pipelines
from des.plan.replacement import Replacement
from des.plan.synchronisation import Synchronisation
from des.training.background import beside_jobs
from des.views.prices import notes_on_prices
from des.world.domain_load import DomainLoad
from des.world.files.load_files import read_loads
from des.world.site_limits import notes_on_sites
from des.worlds import EXAMPLE_JOBS

IN_JOB = ("model", "num_layers", "microbatches", "sequence_length")
OF_LAST = (
    "last_schedule",
    "last_exchange",
    "last_microbatch_size",
    "last_bits",
    "last_bucket_bytes",
    "last_sharded",
    "last_compression",
)


def question_of(config: Config, given: Set[str] = frozenset()) -> Question:
    """Read the files that the configuration names and put the question together.

    Parameters
    ----------
    given
        Fields that the user gave, which may not say the same twice.

    Raises
    ------
    ValueError
        If a file, a name or a number is wrong, or flags contradict each other.
    """
    require_positive(PROG, "epoch_s", config.epoch_s)
    require_count(PROG, "iterations_per_epoch", config.iterations_per_epoch)
    if config.max_judged is not None:
        require_count(PROG, "max_judged", config.max_judged)
    _refuse_contradictions(config, given)
    bare, base = read_networks(config)
    loads = loads_of(config, bare)
    job, own_size, note = job_of(config)
    time, utilisation, communication = objective_of(config).weights
    return Question(
        problem=WholeProblem(
            topology=beside_jobs(bare, loads), job=job, space=_space(config, own_size)
        ),
        bare=bare,
        base=base,
        loads=loads,
        in_force=_in_force(config, bare, job, own_size),
        replacement=Replacement(restart_s=config.restart_s, pays_bytes=not config.restart_only),
        token_factor=config.token_factor,
        most_slowdown=config.most_slowdown,
        max_judged=config.max_judged,
        epoch_s=config.epoch_s,
        iterations_per_epoch=config.iterations_per_epoch,
        preference=Preference(time=time, utilisation=utilisation, communication=communication),
        notes=(*((note,) if note else ()), *layers_note(job.workload(1))),
    )


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
    try:
        return PlanObjective.parse(config.objective, config.at_most)
    except ValueError as error:
        raise UsageError(f"{PROG}: {error}") from error


def situation_of(config: Config, given: Set[str] = frozenset()) -> Situation:
    """Return the situation for the trained policies alone, in microbatches of one sequence.

    Raises
    ------
    ValueError
        As `question_of`; also if the plan in force has replicas.
    """
    question = question_of(config, given)
    if question.in_force is not None and question.in_force.plan.replicas:
        raise UsageError(
            f"{PROG}: --last must be one pipeline for --deciders hi_ppo, got {config.last!r}"
        )
    return question.situation(question.problem.job.workload(1))


def families_named(text: str) -> tuple[Family, ...]:
    """Read ``synchronous``, ``all`` or names of families.

    Raises
    ------
    ValueError
        If a name is of no family, or comes twice.

    Examples
    --------
    >>> families_named("diloco,single")
    ('single', 'diloco')
    """
    sets = {"synchronous": SYNCHRONOUS, "all": FAMILIES}
    if text in sets:
        return sets[text]
    names = [name.strip() for name in text.split(",")]
    unknown = next((name for name in names if name not in FAMILIES), None)
    if unknown is not None or len(set(names)) < len(names):
        raise UsageError(
            f"{PROG}: --families must be synchronous, all, or some of {', '.join(FAMILIES)}, each "
            f"once; got {text!r}"
        )
    return tuple(family for family in FAMILIES if family in names)


def _refuse_contradictions(config: Config, given: Set[str]) -> None:
    """Refuse flags that say the same twice, or that the chosen deciders do not use."""
    if config.job is not None:
        refuse_twice("--job", (*IN_JOB, "tokens_per_step"), given)
    if config.tokens_per_step is not None:
        refuse_twice("--tokens-per-step", ("microbatches",), given)
    of_bound = ("tokens", "schedules", "at_most")
    refuse_twice("--trainer ideal", of_bound, {each for each in of_bound if getattr(config, each)})
    aim = objective_of(config)
    if aim.kind != "time" and (config.decided_by != "hi_ppo" or aim.kind != "weights"):
        raise UsageError(
            f"{PROG}: --objective must be time with --trainer ideal, or weights with --deciders "
            f"hi_ppo, got {config.objective}"
        )
    if config.decided_by == "hi_ppo":
        searched = ("families", "compression", "token_factor", "max_judged", "plan_checkpoint")
        refuse_twice("--deciders hi_ppo", searched, given)
    if config.decided_by == "search":
        refuse_twice("--deciders search", ("checkpoint", "plan_checkpoint"), given)
    if config.across_only:
        refuse_twice("--across-only", ("local_checkpoint",), given)
    _refuse_without_plan(config, given)


def _refuse_without_plan(config: Config, given: Set[str]) -> None:
    """Refuse flags of a plan in force that there is not, or that it does not have."""
    alone = next((field for field in OF_LAST if field in given), None)
    if config.last is None:
        if alone is not None and not config.stream:
            raise UsageError(
                f"{PROG}: --last must be given with --{alone.replace('_', '-')}, got none"
            )
    elif config.last_exchange != "every_step" and "|" not in config.last:
        raise UsageError(
            f"{PROG}: --last-exchange must be every_step where --last is one pipeline, "
            f"got {config.last_exchange}"
        )
    elif config.last_exchange == "every_step" and config.last_bits is not None:
        raise UsageError(
            f"{PROG}: --last-bits must be left out where --last-exchange is every_step, "
            f"got {config.last_bits:g}"
        )


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
    if config.job is not None:
        job, size = read_job(EXAMPLE_JOBS.get(config.job, Path(config.job)))
        return job.in_precision(config.precision), size, ""
    require_count(PROG, "microbatches", config.microbatches, MOST_ITEMS)
    require_count(PROG, "sequence_length", config.sequence_length)
    tokens = config.microbatches * config.sequence_length
    if config.tokens_per_step is not None:
        try:
            tokens = parse_tokens(config.tokens_per_step)
        except ValueError as error:
            raise UsageError(f"{PROG}: --tokens-per-step {error}") from error
    job = TrainingJob.of_tokens(
        config.model,
        tokens,
        config.sequence_length,
        config.num_layers,
        sizes=SPACE_MICROBATCH_SIZES,
        precision=precision_named(PROG, config.precision),
    )
    return job, 1, job.rounding(tokens)


def _space(config: Config, own_size: int) -> PlanSpace:
    sizes = tuple(sorted({*SPACE_MICROBATCH_SIZES, own_size}))
    return PlanSpace(
        families=families_named(config.families),
        compressions=tuple(config.compression),
        microbatch_sizes=sizes,
    )


def _in_force(
    config: Config, topology: Topology, job: TrainingJob, own_size: int
) -> PlanInForce | None:
    if config.last is None:
        return None
    names = [domain.name for domain in topology.domains]
    try:
        placements, shares, tree = parse_pipelines(config.last, names)
    except ValueError as error:
        raise UsageError(f"{PROG}: --last: {error}") from error
    mode: Synchronisation = EVERY_STEP
    if config.last_exchange != "every_step":
        space = PlanSpace() if config.last_bits is None else PlanSpace(bits=(config.last_bits,))
        mode = space.modes(config.last_exchange)[0]
    plan = Plan(
        placement=placements[0],
        replicas=placements[1:],
        shares=shares,
        schedule=config.last_schedule,
        synchronisation=mode,
        exchange=GradientExchange(
            bucket_bytes=config.last_bucket_bytes, tree=tree, sharded=config.last_sharded
        ),
        activation_compression=config.last_compression,
    )
    size = own_size if config.last_microbatch_size is None else config.last_microbatch_size
    require_count(PROG, "last_microbatch_size", size)
    return PlanInForce(workload=job.workload(size), plan=plan)

"""Plans from files: of this project, of Sailor, of Megatron-LM's command lines, and of launches."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, fields, replace
from pathlib import Path

from agents.decision.bound_plan import BoundPlan
from agents.decision.plan_document import is_document, read_document, write_document
from agents.judge.step_times import mean_step
from agents.trainers.megatron_arguments import MegatronCommand
from agents.trainers.plan_checks import check_plan
from agents.trainers.table import trainer_named
from des import NO_CORRECTIONS, IterationResult, Plan, Topology, Workload, check_memory
from des.base.checks import prefixed_errors
from des.base.command import UsageError
from des.base.strict_json import parse_json
from des.base.text_files import read_text
from des.job.models import architecture_named, build_workload
from des.plan.synchronisation import agree_every_step
from scenarios.iteration.iteration_config import Config
from scenarios.iteration.iteration_scenario import IterationScenario, iteration_world
from scenarios.iteration.launch_folder import (
    ARGUMENTS,
    HOSTS,
    PLAN,
    LaunchedPlan,
    read_megatron_launch,
    said_plan,
)
from scenarios.iteration.megatron_command import read_megatron
from scenarios.iteration.megatron_plan import megatron_plan, megatron_workload
from scenarios.iteration.reference_launch import read_reference_launch
from scenarios.iteration.runtime_job import OPERATIONS, RUNTIME
from scenarios.iteration.sailor_plan import is_sailor, read_sailor, sailor_plan
from scenarios.iteration.torchtitan_launch import CONFIG, ORDERS, REPLICA, read_torchtitan_launch

_SHOWN = frozenset({"json", "plan", "out", "figures", "parquet"})
"""Flags that say how results are shown."""

_WORLD = frozenset({"network", "profile", "profile_gpu", "extrapolate", "seed", "sites", "model"})
"""Flags of a world, and of a model, for plans that name neither."""

_JOB = frozenset({"job", "num_layers", "tokens_per_step", "microbatches", "microbatch_size"}) | {
    "sequence_length",
    "recomputation",
    "attention",
    "precision",
    "gradient_precision",
}

_OF_LAUNCH = (PLAN, HOSTS, ARGUMENTS, CONFIG, ORDERS, RUNTIME, *OPERATIONS.values())
"""Files of a launch that are read."""

LAUNCHES: Mapping[str, Callable[[Mapping[str, str]], LaunchedPlan]] = {
    "megatron": read_megatron_launch,
    "torchtitan": read_torchtitan_launch,
    "reference": read_reference_launch,
}
"""Readers of the files of a launch, by trainer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlan:
    """A plan that was read, as a scenario.

    Attributes
    ----------
    form
        What the file is.
    said_step_s
        Time of a step that the file says; None where it says none. [s]
    """

    scenario: IterationScenario
    form: str
    trainer: str
    said_step_s: float | None = None

    def step_s(self, result: IterationResult) -> float:
        """Time of a step, mean over a period of the synchronisation. [s]"""
        own = self.scenario
        if not own.plan.replicas or agree_every_step(own.plan.synchronisation):
            return result.makespan_s
        return mean_step(own.topology, own.workload, own.plan, own.corrections)[0]

    def summary(self, result: IterationResult) -> dict[str, object]:
        """Return what the file is, its time of a step beside that found, and the complete plan.

        There is no complete plan on links that move during the step.
        """
        own, step_s = self.scenario, self.step_s(result)
        bound = BoundPlan(
            topology=own.topology,
            workload=own.workload,
            plan=own.plan,
            trainer=self.trainer,
            step_s=step_s,
            corrections=own.corrections,
        )
        return {
            "form": self.form,
            "trainer": self.trainer,
            "step_s": step_s,
            "said_step_s": self.said_step_s,
            "document": None if own.topology.movement else write_document(bound),
        }

    def sentence(self, result: IterationResult) -> str:
        """Say what was read, and how its own time of a step compares."""
        step_s = self.step_s(result)
        read = f"{self.form} for trainer {self.trainer}: {step_s!r} s a step"
        said_s = self.said_step_s
        if said_s is None:
            return read
        if said_s == step_s:
            return f"{read}, as the file says, to the last bit"
        return f"{read}, {step_s / said_s - 1.0:+.3%} of the {said_s!r} s that the file says"


def read_plan_file(path: Path, config: Config, given: Set[str]) -> FilePlan:
    """Read a plan with all that the file and the flags say of its world and job.

    Raises
    ------
    UsageError
        If a flag is given that the file says.
    ValueError
        If the file is none of a plan, naming what is wrong in it; or the plan does not fit.
    """
    if path.is_dir():
        _refuse(given - _SHOWN)
        return _of_launch(path)
    text = read_text(path, "plan ")
    is_json = text.lstrip()[:1] in ("{", "[")
    try:
        if not text.strip():
            raise ValueError("--num-layers: must be given, got none: the file is empty")
        if not is_json:
            _refuse(given - _SHOWN - _WORLD)
            return _of_megatron(read_megatron(text), config, given)
        content = parse_json(text)
        if is_document(content):
            _refuse(given - _SHOWN)
            return file_plan(read_document(content), "complete plan")
        if is_sailor(content):
            _refuse(given - _SHOWN - _WORLD - _JOB)
            return _of_sailor(content, config)
    except UsageError:
        raise
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    raise ValueError(
        f"{path}: must be a plan of `eastwest decide --json`, a plan of Sailor, with a "
        "pipeline_list, or a text with a command line of Megatron-LM; got other JSON"
    )


def _refuse(flags: Set[str]) -> None:
    if flags:
        name = next(field.name for field in fields(Config) if field.name in flags)
        raise UsageError(f"{name.replace('_', '-')} must not be given with plan, which says it")


def file_plan(bound: BoundPlan, form: str) -> FilePlan:
    """Return a complete plan as one that was read from a file of some form."""
    return FilePlan(
        scenario=IterationScenario(
            topology=bound.topology,
            workload=bound.workload,
            plan=bound.plan,
            corrections=bound.corrections,
            seed=None,
        ),
        form=form,
        trainer=bound.trainer,
        said_step_s=bound.step_s,
    )


def launch_plan(files: Mapping[str, str]) -> FilePlan:
    """Return the plan that a trainer would run with the files of a launch.

    Raises
    ------
    ValueError
        If a file is missing or wrong, or the trainer cannot run the plan.
    """
    trainer = said_plan(files).trainer
    if trainer not in LAUNCHES:
        raise ValueError(
            f"{PLAN}: trainer must be one of {', '.join(LAUNCHES)}, whose files are read; "
            f"got {trainer!r}"
        )
    read = LAUNCHES[trainer](files)
    parts = read.said.topology, read.workload, read.plan
    found = _check(f"launch of {trainer_named(trainer).title}", trainer, None, parts)
    return replace(
        found,
        scenario=replace(found.scenario, corrections=read.said.corrections),
        said_step_s=read.said.step_s,
    )


def _of_launch(folder: Path) -> FilePlan:
    files = {
        path.relative_to(folder).as_posix(): read_text(path, "launch ")
        for name in _OF_LAUNCH
        for path in sorted((*folder.glob(name), *folder.glob(f"{REPLICA}*/{name}")))
    }
    with prefixed_errors(f"{folder}: "):
        return launch_plan(files)


def _of_megatron(command: MegatronCommand, config: Config, given: Set[str]) -> FilePlan:
    topology = iteration_world(config)[1]
    own = architecture_named(config.model) if "model" in given else command.architecture
    if own is None:
        raise ValueError("--hidden-size: must be given, or the model by --model; got neither")
    if own.num_layers != command.num_layers:
        raise ValueError(
            f"--num-layers: must be the {own.num_layers} of {own.name}, got {command.num_layers}"
        )
    sites = _sites(config, topology) or tuple(range(topology.num_domains))
    plan, data = megatron_plan(command, topology, sites)
    workload = megatron_workload(command, own, command.micro_batch_size * data)
    return _check(
        "command line of Megatron-LM", "megatron", config.seed, (topology, workload, plan)
    )


def _of_sailor(content: object, config: Config) -> FilePlan:
    topology, read = iteration_world(config)[1], read_sailor(content)
    own = architecture_named(config.model)
    num_layers = config.num_layers or own.num_layers
    plan, data = sailor_plan(read, topology, _sites(config, topology), num_layers)
    sequences = read.global_batch_size or config.microbatches * (config.microbatch_size or 1)
    size = read.micro_batch_size * data
    if sequences % (size * len(plan.placements)):
        raise ValueError(
            f"gbs: must be a multiple of mbs x dp, {read.micro_batch_size} x "
            f"{len(read.replicas)}; got {sequences}"
        )
    workload = build_workload(
        own,
        num_layers=num_layers,
        num_microbatches=sequences // size,
        microbatch_size=size,
        sequence_length=config.sequence_length,
        recomputation=config.recomputation,
        attention=config.attention,
        precision=config.precision,
        gradient_precision=config.gradient_precision,
    )
    return _check("plan of Sailor", "reference", config.seed, (topology, workload, plan))


def _check(
    form: str, trainer: str, seed: int | None, parts: tuple[Topology, Workload, Plan]
) -> FilePlan:
    """Refuse a plan that the trainer cannot run, or that does not fit."""
    topology, workload, plan = parts
    plan.check_against(topology, workload)
    check_plan(trainer_named(trainer), topology, workload, plan)
    check_memory(topology, workload, plan)
    scenario = IterationScenario(
        topology=topology,
        workload=workload,
        plan=plan,
        corrections=NO_CORRECTIONS,
        seed=seed,
    )
    return FilePlan(scenario=scenario, form=form, trainer=trainer)


def _sites(config: Config, topology: Topology) -> tuple[int, ...] | None:
    """Sites that are named, by their positions; None where none is."""
    if config.sites is None:
        return None
    names = [name.strip() for name in config.sites.split(",")]
    for name in names:
        if name not in topology.index_of or names.count(name) > 1:
            raise UsageError(
                f"sites must be some of {', '.join(topology.index_of)}, each once; got {name!r}"
            )
    return tuple(topology.index_of[name] for name in names)

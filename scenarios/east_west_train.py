"""Learn to place a model's layers on domains joined by moving links; compare with planners."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from agents.batched_env import BatchedPlacementEnv
from agents.env import make_task
from agents.ppo import Trainer, use_torch_threads
from agents.ppo_config import PPOConfig
from agents.task import PlacementTask
from calibration import read_corrections
from des import NO_CORRECTIONS, build_workload, check_job_fits, read_topology
from des.checks import MOST_ITEMS, require_count
from des.topology_files import topology_path
from scenarios.command import INTERRUPTED, UsageError, exit_code_of
from scenarios.config import from_dict, option, parse_given, to_dict
from scenarios.outcome import Evaluation, evaluate_and_report
from scenarios.run_folder import RunFolder
from scenarios.training import restore, train

PROG = "python -m scenarios.east_west_train"
RUNS = Path("runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What is trained and how; the fields are the flags."""

    network: str = option("east_central_west", "topology file, or a shipped world", is_file=True)
    model: str = option("llama2_70b", "model preset")
    num_layers: int | None = option(None, "divide the model into that many equal layers")
    microbatches: int = option(32, "microbatches per iteration")
    schedule: str = option("1f1b", "pipeline schedule")
    actions: str = option("order_split", "action encoding: order_split or per_layer")
    corrections: Path | None = option(
        None, "calibrated factors for the simulator, a JSON file", is_file=True
    )
    epochs_per_episode: int = option(8, "decisions from one even split to the next")
    seed: int = option(0, "of everything random in training")
    steps: int = option(60_000, "decisions to train on")
    num_envs: int = option(32, "environments stepped together")
    steps_per_rollout: int = option(16, "of each environment")
    learning_rate: float = option(1e-3, "at the start; falls to 0")
    entropy_coefficient: float = option(0.01, "at the start; falls to 0")
    evaluation_draws: int = option(64, "held-out networks to judge on")
    evaluation_seed: int = option(1_000_000, "of the held-out networks")
    workers: int = option(2, "processes that simulate; results are the same for any")
    out: Path | None = option(None, "run folder; none: the next free runs/east_west-NNN")
    resume: bool = option(False, "continue the run in --out, or the newest one")
    quick: bool = option(False, "a run of seconds that shows all steps and learns little")

    def __post_init__(self) -> None:
        for name in (
            "microbatches",
            "epochs_per_episode",
            "num_envs",
            "steps_per_rollout",
            "evaluation_draws",
            "workers",
        ):
            require_count(PROG, name, getattr(self, name), MOST_ITEMS)
        require_count(PROG, "steps", self.steps)
        for name in ("seed", "evaluation_seed"):
            if getattr(self, name) < 0:
                raise UsageError(f"{PROG}: {name} must be at least 0, got {getattr(self, name)}")
        ppo = ppo_config(self)
        if self.num_envs * self.steps_per_rollout < ppo.num_minibatches:
            raise UsageError(
                f"{PROG}: num_envs times steps_per_rollout must be at least {ppo.num_minibatches}, "
                f"got {self.num_envs} x {self.steps_per_rollout}"
            )


RUNTIME_FIELDS = frozenset({"out", "resume", "workers"})
"""Where and how a run is done: not recorded, as results do not depend on them."""


def quick(config: Config, given: frozenset[str]) -> Config:
    """Return a configuration of seconds; what was given stays."""
    short = replace(
        config, steps=1024, evaluation_draws=4, num_envs=16, steps_per_rollout=8, workers=1
    )
    return replace(short, **{name: getattr(config, name) for name in given})


def resolve(argv: Sequence[str] | None) -> tuple[Config, frozenset[str]]:
    """Read the command line, ``--quick`` worked in; also return the names of the given fields."""
    config, given = parse_given(Config, argv, prog=PROG, description=__doc__ or "")
    return (quick(config, given) if config.quick else config), given


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    config, given = resolve(argv)
    use_torch_threads(1)
    if config.resume:
        config, folder = _open_run(config, given)
        task = make_scenario_task(config)
    else:
        task = make_scenario_task(config)
        folder = _create_run(config)
    return _run(config, task, folder, _console())


def _console() -> Console:
    """A terminal as wide as it is; files and pipes wide enough for the table."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=100)


def _run(config: Config, task: PlacementTask, folder: RunFolder, console: Console) -> int:
    """Train, evaluate, report."""
    path = shlex.quote(str(folder.path))
    try:
        with BatchedPlacementEnv(
            task, num_envs=config.num_envs, seed=config.seed, num_workers=config.workers
        ) as environment:
            trainer = Trainer(environment, ppo_config(config), config.seed, config.steps)
            fingerprint = task.fingerprint()
            restore(trainer, folder, fingerprint)
            complete = train(trainer, folder, fingerprint, console)
        if complete:
            evaluation = Evaluation(
                task=task, num_draws=config.evaluation_draws, seed=config.evaluation_seed
            )
            command = f"{PROG} --config {shlex.quote(str(folder.config_json))}"
            evaluate_and_report(evaluation, folder, folder.read_config(), command, console)
            return 0
    except KeyboardInterrupt:
        pass  # before, between or after the steps: the last checkpoint is whole
    console.print(
        f"Interrupted. Continue with: {PROG} --resume --out {path}", soft_wrap=True, markup=False
    )
    return INTERRUPTED


def make_scenario_task(config: Config) -> PlacementTask:
    """Read the files that the configuration names and put the task together.

    Raises
    ------
    ValueError
        If a file or name is wrong, or the job is larger than all domains together.
    """
    topology = read_topology(config.network)
    workload = build_workload(
        config.model, num_layers=config.num_layers, num_microbatches=config.microbatches
    )
    check_job_fits(topology, workload)
    corrections = config.corrections
    return make_task(
        topology=topology,
        workload=workload,
        schedule=config.schedule,
        actions=config.actions,
        epochs_per_episode=config.epochs_per_episode,
        corrections=NO_CORRECTIONS if corrections is None else read_corrections(corrections),
    )


def ppo_config(config: Config) -> PPOConfig:
    """Return the training's hyperparameters."""
    return PPOConfig(
        num_steps=config.steps_per_rollout,
        learning_rate=config.learning_rate,
        entropy_coefficient=config.entropy_coefficient,
    )


def recorded(config: Config) -> dict[str, object]:
    """Return what a run folder keeps of its configuration: all that results depend on.

    Input files appear by the names of the copies that the folder keeps of them.
    """
    kept = replace(
        config,
        network=f"network{topology_path(config.network).suffix}",
        corrections=None if config.corrections is None else Path("corrections.json"),
    )
    return {name: value for name, value in to_dict(kept).items() if name not in RUNTIME_FIELDS}


def _create_run(config: Config) -> RunFolder:
    """Make the run folder, with copies of the input files: it can be resumed and repeated alone."""
    path = _numbered(max(_numbers(), default=0) + 1) if config.out is None else config.out
    folder = RunFolder.create(path)
    folder.keep(topology_path(config.network), "network")
    if config.corrections is not None:
        folder.keep(config.corrections, "corrections")
    folder.write_config(recorded(config))
    return folder


def _numbered(number: int) -> Path:
    return RUNS / f"east_west-{number:03}"


def _numbers() -> list[int]:
    """Numbers of the runs that there are."""
    matches = (re.fullmatch(r"east_west-(\d{3,9})", path.name) for path in RUNS.glob("*"))
    return [int(match[1]) for match in matches if match is not None]


def _open_run(config: Config, given: frozenset[str]) -> tuple[Config, RunFolder]:
    """Open the run to resume; its own configuration holds, and flags must not contradict it."""
    path = config.out
    if path is None:
        numbers = _numbers()
        if not numbers:
            raise UsageError(f"{PROG}: --resume must find a run in {RUNS}, or be told by --out")
        path = _numbered(max(numbers))
    folder = RunFolder.open_existing(path)
    record = folder.read_config()
    asked = recorded(config)
    for name in sorted(given - RUNTIME_FIELDS):
        if asked[name] != record.get(name):
            raise UsageError(
                f"{PROG}: with --resume, {name} must be {record.get(name)!r} as in "
                f"{folder.config_json}, got {asked[name]!r}"
            )
    old = from_dict(Config, record, source=str(folder.config_json))
    corrections = None if old.corrections is None else path / old.corrections
    kept = replace(old, network=str(path / old.network), corrections=corrections)
    return replace(kept, workers=config.workers, out=path, resume=True), folder


if __name__ == "__main__":
    raise SystemExit(main())

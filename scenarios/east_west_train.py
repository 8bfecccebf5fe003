"""Learn to place a model's layers on domains joined by moving links; compare with planners."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from rich.console import Console

from agents.batched_env import BatchedPlacementEnv
from agents.env import make_task
from agents.ppo import PPOConfig, Trainer, use_torch_threads
from agents.task import PlacementTask
from calibration import read_corrections
from des import NO_CORRECTIONS, build_workload, read_topology
from des.checks import require_count
from scenarios.config import UsageError, exit_code_of, from_dict, option, parse_given, to_dict
from scenarios.outcome import Evaluation, evaluate_and_report
from scenarios.run_folder import RunFolder
from scenarios.training import restore, train

PROG = "python -m scenarios.east_west_train"
RUNS = Path("runs")
INTERRUPTED = 130
"""Exit code of a command ended by Ctrl-C."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What is trained and how; the fields are the flags."""

    network: str = option("east_central_west", "topology file, or a shipped world")
    model: str = option("llama2_70b", "model preset")
    num_layers: int | None = option(None, "divide the model into that many equal layers")
    microbatches: int = option(32, "microbatches per iteration")
    schedule: str = option("1f1b", "pipeline schedule")
    actions: str = option("order_split", "action encoding: order_split or per_layer")
    corrections: Path | None = option(None, "calibrated factors for the simulator, a JSON file")
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
            "steps",
            "num_envs",
            "steps_per_rollout",
            "evaluation_draws",
            "workers",
        ):
            require_count(PROG, name, getattr(self, name))
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
    short = replace(config, steps=1024, evaluation_draws=4, num_envs=16, steps_per_rollout=8)
    return replace(short, **{name: getattr(config, name) for name in given})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    config, given = parse_given(Config, argv, prog=PROG, description=__doc__ or "")
    console = Console(highlight=False)
    use_torch_threads(1)
    if config.resume:
        config, folder = _open_run(config, given)
        task = make_scenario_task(config, network=str(folder.network))
    else:
        config = quick(config, given) if config.quick else config
        task = make_scenario_task(config, network=config.network)
        folder = _create_run(config)
    return _run(config, task, folder, console)


def _run(config: Config, task: PlacementTask, folder: RunFolder, console: Console) -> int:
    """Train, evaluate, report."""
    how_to_resume = f"{PROG} --resume --out {shlex.quote(str(folder.path))}"
    try:
        with BatchedPlacementEnv(
            task, num_envs=config.num_envs, seed=config.seed, num_workers=config.workers
        ) as environment:
            trainer = Trainer(environment, ppo_config(config), config.seed, config.steps)
            restore(trainer, folder)
            complete = train(trainer, folder, console)
        if complete:
            evaluate_and_report(
                Evaluation(
                    task=task, num_draws=config.evaluation_draws, seed=config.evaluation_seed
                ),
                folder,
                configuration=recorded(config),
                command=f"{PROG} --config {folder.config_json}",
                console=console,
            )
            return 0
    except KeyboardInterrupt:
        pass  # before, between or after the steps: the last checkpoint is whole
    console.print(f"Interrupted. Continue with: {how_to_resume}", soft_wrap=True, markup=False)
    return INTERRUPTED


def make_scenario_task(config: Config, *, network: str) -> PlacementTask:
    """Read the files that the configuration names and put the task together."""
    corrections = config.corrections
    return make_task(
        topology=read_topology(network),
        workload=build_workload(
            config.model, num_layers=config.num_layers, num_microbatches=config.microbatches
        ),
        schedule=config.schedule,
        actions=config.actions,
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
    """Return what a run folder keeps of its configuration: all that results depend on."""
    plain = to_dict(config)
    return {name: value for name, value in plain.items() if name not in RUNTIME_FIELDS}


def _create_run(config: Config) -> RunFolder:
    """Make the run folder, with a copy of the network file: a resumed run sees the same world."""
    path = config.out
    if path is None:
        path = next(path for path in map(_numbered, count(1)) if not path.exists())
    folder = RunFolder.create(path)
    folder.keep_network(config.network)
    folder.write_config(recorded(config))
    return folder


def _numbered(number: int) -> Path:
    return RUNS / f"east_west-{number:03}"


def _open_run(config: Config, given: frozenset[str]) -> tuple[Config, RunFolder]:
    """Open the run to resume; its own configuration holds, and flags must not contradict it."""
    path = config.out
    if path is None:
        numbered = sorted(RUNS.glob("east_west-[0-9][0-9][0-9]*"))
        if not numbered:
            raise UsageError(f"{PROG}: --resume must find a run in {RUNS}, or be told by --out")
        path = numbered[-1]
    folder = RunFolder.open_existing(path)
    old = from_dict(Config, folder.read_config(), source=str(folder.config_json))
    for name in sorted(given - RUNTIME_FIELDS):
        if getattr(config, name) != getattr(old, name):
            raise UsageError(
                f"{PROG}: with --resume, {name} must be {getattr(old, name)!r} as in "
                f"{folder.config_json}, got {getattr(config, name)!r}"
            )
    return replace(old, workers=config.workers, out=path, resume=True), folder


if __name__ == "__main__":
    raise SystemExit(main())

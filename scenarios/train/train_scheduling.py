"""Train PPO of Stable-Baselines3 on EastWest/Scheduling-v0, against never moving and rules."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from agents.decision.situation import TIME_ONLY
from agents.search.objective import preference_of
from agents.trainers.ideal import IDEAL
from agents.trainers.table import trainer_named
from des.base.checks import require_count, require_seed
from des.base.command import EXIT_CODES
from des.base.document import DOCUMENT
from des.base.extras import require_extra
from des.base.flags import option, parse, to_dict
from des.base.lazy import lazy_imports
from des.figures.figure import Figure, panel_figure
from des.figures.marks import Points
from des.figures.palette import BLUE
from des.figures.panels import Axis, named_rows
from scenarios.frame.outputs import OutputFlags, write_outputs
from scenarios.frame.run_folder import RunFolder
from scenarios.train.training_config import PROG as TRAIN

with lazy_imports(__name__):
    import pandas as pd

    from agents.decision import run_epochs
    from agents.decision.problem import PlanningProblem
    from agents.decision.situation import Scheduler
    from agents.ppo import devices
    from agents.replanning import bound_schedulers, search_schedulers
    from agents.scheduling import make_task, playing
    from agents.scheduling.playing import Played
    from agents.scheduling.task import SchedulingTask
    from agents.search import ideal_plans, trainer_search
    from des import Plan
    from scenarios.frame import rows_report, statistics
    from scenarios.frame.report import Report
    from scenarios.train import sb3_policy

PROG = f"{TRAIN} scheduling"
POLICIES_CSV = "policies.csv"
HELD_OUT_SEED = 2**40
"""Draws that policies are judged on have seeds from here on; those of the training are below."""

HORIZONS = (1.0, 4.0, 16.0)
"""Horizons of the rules that choose among known plans. [epochs]"""

SEARCH_HORIZON = 8.0
"""Epochs within which a move to the plan of a search in every epoch has to pay."""

_EPILOG = f"""\
The environment is EastWest/Scheduling-v0, by default with perfect devices, the fast proxy: with
--trainer megatron all policies are trained and judged on bound plans. Every policy is played on
the same draws of links and loads, none of which the training has seen.

examples:
  {PROG} --out runs/scheduling
  {PROG} --seeds 0 --steps 20_000 --held-out 8 --out runs/short

files written to --out:
  config.json   settings, versions and source revision
  {POLICIES_CSV}  one row per policy (--parquet: also as Parquet)
  report.html   the same as a page, and its picture (--figures)

exit codes: 0 done; 2 a flag is wrong, the folder holds files or cannot be written, or
  Stable-Baselines3 is missing; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of the trainings and of the comparison."""

    out: Path = option(Path("runs/scheduling"), "new or empty folder of the run")
    seeds: tuple[int, ...] = option((0, 1, 2), "seeds of the trainings")
    actions: tuple[Literal["all", "known"], ...] = option(
        ("all", "known"), "kinds of actions to train with: all, or known plans alone"
    )
    epochs: int = option(64, "epochs of an episode")
    steps: int = option(200_000, "epochs decided in each training, of all environments together")
    num_envs: int = option(32, "environments stepped together")
    draws: int = option(128, "draws of links and loads to train on")
    held_out: int = option(64, "draws to judge on")
    trainer: str = option(IDEAL.name, "ideal, or a trainer whose bound plans are learnt and judged")
    objective: str = option(
        "time", "what policies are rewarded for: time, or weights w1,w2,w3 as of eastwest decide"
    )
    search: bool = option(True, "whether a search in every epoch is judged too, which takes long")

    def __post_init__(self) -> None:
        for seed in self.seeds:
            require_seed(PROG, "seeds", seed)
        for name in ("epochs", "steps", "num_envs", "draws", "held_out"):
            require_count(PROG, name, getattr(self, name))
        trainer_named(self.trainer)
        preference_of(PROG, self.objective)
        require_extra(PROG, "stable_baselines3")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """Worth of a policy: change of time against never moving, in percent of it.

    ``half_width_percent`` is half of the 95 % interval over draws, ``moves`` are the epochs of an
    episode that begin with a change, ``training_cpu_s`` is of the training alone. ``sent_tb``
    are terabytes sent in an episode, ``value`` is `SchedulingTask.value` less that of never moving.
    """

    policy: str
    time_percent: float
    half_width_percent: float
    moves: float
    training_cpu_s: float
    sent_tb: float
    value: float
    value_half_width: float


def run(arguments: Sequence[str], prog: str) -> int:
    """Train by the flags of the task and return the exit code."""
    config = parse(Config, arguments, prog=prog, description=__doc__ or "", epilog=_EPILOG)
    choice = config.choice()
    devices.use_torch_threads(1)
    with RunFolder.created(config.out, {**to_dict(config), "out": str(config.out)}) as folder:
        rows = []
        heads = {"policy": -28, "time %": 9, "± %": 6, "moves": 7, "TB": 7, "R": 8, "± R": 7}
        for head, width in (heads | {"CPU s": 8}).items():
            sys.stdout.write(head.rjust(width) if width > 0 else head.ljust(-width))
        sys.stdout.write("\n")
        for row in _rows(config):
            rows.append(row)
            sys.stdout.write(
                f"{row.policy:28}{row.time_percent:+9.1f}{row.half_width_percent:6.1f}"
                f"{row.moves:7.1f}{row.sent_tb:7.1f}{row.value:+8.3f}"
                f"{row.value_half_width:7.3f}{row.training_cpu_s:8.0f}\n"
            )
            sys.stdout.flush()
        frame = pd.DataFrame(list(map(asdict, rows)))
        write_outputs(folder.path, choice, _report(config, frame), {Path(POLICIES_CSV).stem: frame})
    DOCUMENT.add(rows=frame, out=config.out)
    return 0


def policies_figure(frame: pd.DataFrame) -> Figure:
    """Return the change of time of each policy, with its interval."""
    best = frame.sort_values("time_percent").iloc[0]
    points = Points(
        label="mean and 95 % interval",
        x=tuple(frame["time_percent"]),
        y=tuple(map(float, range(len(frame)))),
        x_half_widths=tuple(frame["half_width_percent"]),
        colour=BLUE,
    )
    return panel_figure(
        name="policies",
        title="Change of time against never moving",
        seen=f"Policies by their change of time; the quickest is {best['policy']}.",
        x=Axis(label="change of time [%]"),
        y=named_rows(frame["policy"]),
        marks=(points,),
        grid="x",
    )


def _report(config: Config, frame: pd.DataFrame) -> Report:
    best = frame.sort_values("time_percent").iloc[0]
    return rows_report.rows_report(
        config,
        PROG,
        title="Policies of EastWest/Scheduling-v0",
        question="Which policy ends the held-out episodes soonest?",
        answer=f"{best['policy']}: {best['time_percent']:+.1f} ± "
        f"{best['half_width_percent']:.1f} % of the time of never moving.",
        tables={"Policies": frame},
        figures=[policies_figure(frame)],
    )


def _rows(config: Config) -> Iterator[PolicyRow]:
    """Judge rules, then train and judge policies, on the same draws."""
    task = make_task.make_scheduling_task(
        trainer=config.trainer,
        num_epochs=config.epochs,
        num_draws=config.draws,
        objective=config.objective,
    )
    seeds = range(HELD_OUT_SEED, HELD_OUT_SEED + config.held_out)
    kept = playing.play(task, playing.keeping(task), seeds)
    yield _row(task, "never move", kept, kept)
    fixed = [
        playing.play(task, playing.holding(task, one), seeds) for one in range(len(task.known))
    ]
    yield _row(task, "best fixed", min(fixed, key=lambda one: one.total_s.mean()), kept)
    yield _row(task, "random", playing.play(task, playing.at_random(task, 0), seeds), kept)
    for horizon in HORIZONS:
        own = playing.play(task, playing.over_horizon(task, horizon), seeds)
        yield _row(task, f"known plans, h{horizon:g}", own, kept)
    if config.search:
        yield _row(task, f"search, h{SEARCH_HORIZON:g}", _search(task, seeds), kept)
    for actions in config.actions:
        for preference in dict.fromkeys((task.preference, TIME_ONLY)):
            learnt = task.variant(actions, preference)
            yield from _train(task, learnt, config, seeds, kept)


def _train(
    task: SchedulingTask,
    learnt: SchedulingTask,
    config: Config,
    seeds: Sequence[int],
    kept: Played,
) -> Iterator[PolicyRow]:
    """Train on a task and judge by another, each seed; then the mean over them, draw by draw."""
    name = f"PPO, {learnt.actions}"
    if learnt.preference != task.preference:
        name += ", for time"
    trained, took_s = [], []
    for seed in config.seeds:
        begin_s = time.process_time()
        act = sb3_policy.trained_policy(
            learnt, seed=seed, steps=config.steps, num_envs=config.num_envs
        )
        took_s.append(time.process_time() - begin_s)
        trained.append(playing.play(learnt, act, seeds))
        yield _row(task, f"{name}, seed {seed}", trained[-1], kept, took_s[-1])
    means = playing.Played(*np.mean(trained, axis=0))
    yield _row(task, f"{name}, mean", means, kept, float(np.mean(took_s)))


def _row(
    task: SchedulingTask, policy: str, own: Played, kept: Played, cpu_s: float = 0.0
) -> PolicyRow:
    change = statistics.paired_difference(own.total_s, kept.total_s)
    world = task.setting.world
    clock_s = world.num_epochs * world.epoch_s
    values, kept_values = (
        task.value(one.num_iterations, one.sent_bytes, clock_s) for one in (own, kept)
    )
    more = statistics.mean_and_interval(values - kept_values)
    return PolicyRow(
        policy=policy,
        time_percent=1e2 * change.mean,
        half_width_percent=1e2 * change.half_width,
        moves=float(own.num_moves.mean()),
        training_cpu_s=cpu_s,
        sent_tb=float(own.sent_bytes.mean()) / 1e12,
        value=more.mean,
        value_half_width=more.half_width,
    )


def _search(task: SchedulingTask, seeds: Sequence[int]) -> Played:
    """Let a search among the plans of the task decide each draw."""
    setting = task.setting

    def best_plan(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
        asked = problem.topology, problem.workload, setting.space, problem.corrections
        return ideal_plans.ideal_plans(*asked)[0].plan

    scheduler: Scheduler = search_schedulers.SearchScheduler(
        planner=best_plan, horizon_epochs=SEARCH_HORIZON, schedules=setting.space.schedules
    )
    if not setting.trainer.is_ideal:
        scheduler = bound_schedulers.search_bound_scheduler(
            trainer_search.TrainerSearch(trainer=setting.trainer), SEARCH_HORIZON
        )
    found = [run_epochs.run_course(setting.world, seed, scheduler) for seed in seeds]
    sums = [
        (
            one.total_s,
            float(sum(row.change_s > 0.0 for row in one.rows)),
            one.num_iterations,
            sum(row.moved_bytes + row.num_iterations * row.cost_bytes for row in one.rows),
        )
        for one in found
    ]
    return playing.Played(*np.array(sums).T)

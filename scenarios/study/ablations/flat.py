"""Flat PPO, trained on each world it is judged on, against Hi-PPO that has seen none of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from des.base.checks import require_count, require_seed
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.flags import option, to_dict
from des.base.help_text import terminal_width
from des.base.lazy import lazy_imports
from scenarios.frame.files import write_csv
from scenarios.frame.outputs import OutputFlags, write_outputs
from scenarios.frame.run_folder import RunFolder
from scenarios.study.ablations.flat_training import (
    NUM_ENVS,
    FlatScheduler,
    flat_task,
    own_course,
    train_flat,
)
from scenarios.suites import SuiteWorld, suite

with lazy_imports(__name__):
    import pandas as pd

    from agents.decision import run_epochs
    from agents.decision.situation import Scheduler
    from agents.hi_ppo import policies, schedulers
    from agents.planners.search import search
    from agents.ppo import devices
    from agents.replanning import search_schedulers
    from scenarios.study.ablations import ablations_page


PROG = "python -m scenarios.ablations.flat"
SEARCH, FLAT, FLAT_DEPTH, HI_PPO = "search_once", "flat", "flat, best depth", "hi_ppo"
_SMALL = (4, 5, 6)

_EPILOG = f"""\
The flat policy is one network that places all layers in every epoch: no hierarchy, no pointer, no
look-ahead, no move policy. It is trained by PPO on the very world it is judged on, paying for its
changes and rewarded for time alone, under the depth of the best plan at base figures; draws of the
judgement are not those of the training. Its environment knows one law only, so it learns with
bandwidths uniform within +-30 % and latencies within +-20 %, held as long as in the suite, and no
load. Hi-PPO comes as it is shipped.

courses:
  own    links move as in the training of the flat policy
  suite  links and load move as the suite says

methods:
  {FLAT}              under its one depth
  {FLAT_DEPTH}  run under all depths each time, the fastest plan taken
  {HI_PPO}            the shipped policies of the same seed, whole
  {SEARCH}       the best plan at base figures, held

files written to --out: config.json, flat.csv; training.csv, the end of each training (--parquet:
both also as Parquet); report.html and its picture (--figures)

examples:
  {PROG} --out runs/flat
  {PROG} --num-domains 4 --seeds 0,1,2 --out runs/four

exit codes: 0 done; 2 a flag is wrong; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of the comparison with flat PPO."""

    out: Path = option(Path("runs/ablations-flat"), "new or empty folder of the run")
    suites: tuple[str, ...] = option(("eval_held", "hard"), "suites of the worlds")
    num_domains: tuple[int, ...] = option(_SMALL, "numbers of domains")
    num_worlds: int = option(4, "worlds of each suite")
    steps: int = option(2_000_000, "decisions that a flat policy is trained on")
    num_envs: int = option(NUM_ENVS, "environments that it is trained in, side by side")
    seeds: tuple[int, ...] = option((0, 1, 2), "of the trainings; those of shipped policies")
    num_epochs: int = option(64, "decisions of a draw")
    num_draws: int = option(1, "draws of each world")
    seed: int = option(1, "seed of the worlds and their draws")

    def __post_init__(self) -> None:
        for name in ("num_worlds", "steps", "num_envs", "num_epochs", "num_draws"):
            require_count(PROG, name, getattr(self, name))
        require_seed(PROG, "seed", self.seed)
        if not self.seeds or not self.suites:
            raise UsageError(f"{PROG}: seeds and suites must each name at least one, got none")
        for seed in self.seeds:
            policies.shipped(seed)
        for name in self.suites:
            suite(name).with_domains(*self.num_domains)


@command(Config, PROG, __doc__, _EPILOG)
def main(config: Config) -> None:
    """Run the command on its settings."""
    choice = config.choice()
    devices.use_torch_threads(1)
    found: list[dict[str, object]] = []
    trainings: list[dict[str, object]] = []
    with RunFolder.created(config.out, to_dict(config)) as folder:
        for world in _worlds(config):
            rows, ends = on_world(world, config)
            found += rows
            trainings += ends
            frame = pd.DataFrame(found)
            write_csv(folder.path / "flat.csv", frame)
            write_csv(folder.path / "training.csv", pd.DataFrame(trainings))
            sys.stdout.write(f"{world.name}, {world.num_domains} domains: done\n")
            sys.stdout.flush()
        page = ablations_page.comparison_report(
            config,
            PROG,
            frame.assign(network=frame["world"], over_search=100.0 * frame["over_search"]),
            by="method",
            value="over_search",
            label=f"total time over that of {SEARCH} [%]",
            title="Hi-PPO and a flat policy of each world",
            question="What does Hi-PPO gain over a policy that is trained on one world?",
            lines=[f"{name}: {cell}" for name, cell in flat_summary(frame).loc[HI_PPO].items()],
        )
        frames = {"flat": frame, "training": pd.DataFrame(trainings)}
        write_outputs(folder.path, choice, page, frames)
    DOCUMENT.add(rows=frame, trainings=trainings, out=config.out)
    sys.stdout.write("total time over that of search_once [%]: mean ± 95 % over worlds and seeds\n")
    sys.stdout.write(f"{flat_summary(frame).to_string(line_width=terminal_width())}\n")
    sys.stdout.write(f"rows: {folder.path / 'flat.csv'}\n")


def _worlds(config: Config) -> Iterator[SuiteWorld]:
    for name in config.suites:
        yield from (
            suite(name).with_domains(*config.num_domains).worlds(config.num_worlds, config.seed)
        )


def on_world(
    world: SuiteWorld, config: Config
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Rows of all methods on the draws of both courses of a world, and the ends of trainings."""
    best = search.search(world.topology, world.workload)
    task = flat_task(world, best.plan.schedule)
    rows: list[dict[str, object]] = []
    ends: list[dict[str, object]] = []
    courses = {"own": own_course(world), "suite": world}
    for seed in config.seeds:
        flat = train_flat(task, seed=seed, steps=config.steps, num_envs=config.num_envs)
        ends.append(
            {
                "world": world.name,
                "seed": seed,
                "steps": flat.last.step_count,
                "mean_reward": flat.last.mean_reward,
                "iteration_over_best": flat.last.metrics["iteration_time_s"] / best.makespan_s,
                "entropy": flat.last.entropy,
            }
        )
        methods: dict[str, Scheduler] = {
            SEARCH: search_schedulers.HoldPlan(lambda *_: best.plan),
            FLAT: FlatScheduler(flat),
            FLAT_DEPTH: FlatScheduler(flat, chooses_depth=True),
            HI_PPO: schedulers.policy_scheduler(policies.shipped(seed))[0](),
        }
        for course, moving in courses.items():
            for draw in range(config.seed, config.seed + config.num_draws):
                episodes = {
                    name: run_epochs.run_course(
                        moving, draw, one, num_epochs=config.num_epochs, must_fit=False
                    )
                    for name, one in methods.items()
                }
                rows += [
                    {
                        "suite": world.suite,
                        "world": world.name,
                        "num_domains": world.num_domains,
                        "course": course,
                        "draw": draw,
                        "seed": seed,
                        **_row(name, episode, episodes[SEARCH]),
                    }
                    for name, episode in episodes.items()
                ]
    return rows, ends


def _row(
    name: str, episode: run_epochs.CourseResult, held: run_epochs.CourseResult
) -> dict[str, object]:
    return {
        "method": name,
        "total_s": episode.total_s,
        "over_search": episode.total_s / held.total_s - 1.0,
        "num_changes": sum(epoch.change_s > 0.0 for epoch in episode.rows),
        "num_misfits": sum(not epoch.fits_memory for epoch in episode.rows),
    }


def flat_summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Means by suite and course with intervals over worlds and seeds; one row per method. [%]"""
    columns: dict[str, dict[str, str]] = {}
    for (name, course), part in frame.groupby(["suite", "course"], sort=False):
        cells: dict[str, str] = {}
        for method in (FLAT, FLAT_DEPTH, HI_PPO):
            own = part[part["method"] == method]
            table = own.pivot_table(index="seed", columns="world", values="over_search")
            found = ablations_page.over_seeds_and_networks(100.0 * table.to_numpy())
            changes = own["num_changes"].mean()
            misfits = int(own["num_misfits"].sum())
            told = f", {misfits} epochs do not fit" if misfits else ""
            cells[method] = (
                f"{found.mean:+.1f} ± {found.half_width:.1f} ({changes:.0f} changes{told})"
            )
        columns[f"{name}, {course}"] = cells
    return pd.DataFrame(columns)

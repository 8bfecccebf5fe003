"""Worth of learned proposals of plans: the best of as many learned, random and simple ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from des.base.checks import require_count, require_seed
from des.base.command import EXIT_CODES, exit_code_of
from des.base.flags import JsonFlag, option, parse, to_dict
from des.base.lazy import lazy_imports
from scenarios.frame.outputs import OutputChoice, figures_option, parquet_option, write_outputs
from scenarios.frame.run_folder import RunFolder
from scenarios.suites import suite

with lazy_imports(__name__):
    import pandas as pd
    from rich import progress as rich_progress
    from rich import table as rich_table
    from rich.console import Console
    from rich.table import Table

    from agents.hi_ppo.plans import (
        plan_checkpoint,
        plan_policy,
        plan_proposals,
        plan_worlds,
        simple_proposals,
        sketch_judge,
    )
    from agents.hi_ppo.plans.plan_worlds import PlanWorld
    from agents.hi_ppo.plans.simple_proposals import DrawGroups
    from agents.ppo import devices
    from des.base import console as base_console
    from scenarios.study.ablations import intervals, rows_page


PROG = "python -m scenarios.ablations.proposals"

LEARNED, UNTRAINED, RANDOM, NEIGHBOURS = "learned", "untrained", "random", "nearest neighbours"
_SUITE = "sites_static"
_LONG_LOOK_AHEAD = 4000

_EPILOG = f"""\
Every method proposes as many plans (groups of domains in order) for each network of the suite
{_SUITE}, and each is judged under {{num_schedules}} schedules; with --look-ahead that many
changes of the best ones are judged too. The excess is the time of a step of the best one over that
of the best plan known: of all methods and of {_LONG_LOOK_AHEAD:,} changes from their plans. Times
are those of the simulator for a pipeline; copies of the model have their shares and rings
estimated. A plan that does not fit counts as one of 3,000 times even work without a network.

examples:
  {PROG} --out runs/proposals
  {PROG} --checkpoint runs/plans-0/plans.pt,runs/plans-1/plans.pt --num-domains 32,64

files written to --out: config.json, proposals.csv (--parquet: also as Parquet), report.html and its
picture (--figures)

exit codes: 0 done; 2 a flag is wrong or a checkpoint cannot be read; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Settings of the comparison; the fields are the flags."""

    out: Path = option(Path("runs/proposals"), "new or empty folder of the run")
    checkpoint: tuple[Path, ...] = option(
        (), "policies of train plans by seed, plans.pt; none: those shipped"
    )
    num_domains: tuple[int, ...] = option((10, 16, 24, 32, 64), "numbers of domains")
    num_worlds: int = option(16, "networks for each number of domains")
    proposals: int = option(64, "plans that each method proposes")
    look_ahead: int = option(0, "changes of the best ones that are judged after them")
    seed: int = option(0, "seed of the networks and of what is drawn")
    figures: tuple[str, ...] = figures_option()
    parquet: bool = parquet_option()

    def __post_init__(self) -> None:
        require_count(PROG, "num_worlds", self.num_worlds)
        require_count(PROG, "proposals", self.proposals)
        if self.look_ahead != 0:
            require_count(PROG, "look_ahead", self.look_ahead)
        require_seed(PROG, "seed", self.seed)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> None:
    epilog = _EPILOG.format(num_schedules=len(sketch_judge.SKETCH_SCHEDULES))
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=epilog)
    choice = OutputChoice(figures=config.figures, parquet=config.parquet)
    devices.use_torch_threads(1)
    methods = _methods(config)
    console = base_console.FittedConsole()
    with RunFolder.created(config.out) as folder:
        folder.write_config(to_dict(config))
        frame = compared_proposals(config, methods, console)
        verdicts = list(_verdicts(frame))
        page = rows_page.comparison_report(
            config,
            PROG,
            frame.assign(excess=100.0 * frame["excess"]),
            by="method",
            value="excess",
            label="excess of a step over the best plan known [%]",
            title="Learned proposals of plans",
            question="Are learned proposals worth more than random and simple ones?",
            lines=verdicts,
        )
        write_outputs(folder.path, choice, page, {"proposals": frame})
    rows_page.show_verdicts(
        console, _table(frame), verdicts, frame=frame, csv=config.out / "proposals.csv"
    )


def _methods(config: Config) -> dict[tuple[str, int], DrawGroups]:
    """Methods by name and training seed; untrained weights are drawn once for each seed."""
    files = config.checkpoint or tuple(plan_proposals.shipped_plan_files())
    found: dict[tuple[str, int], DrawGroups] = {}
    for seed, path in enumerate(files):
        policy = plan_checkpoint.load_plan_policy(path)
        found[LEARNED, seed] = plan_proposals.proposing_groups(policy)
    for seed in range(len(files)):
        untrained = plan_policy.untrained_plan_policy(seed)
        found[UNTRAINED, seed] = plan_proposals.proposing_groups(untrained)
        found[RANDOM, seed] = simple_proposals.random_groups
        found[NEIGHBOURS, seed] = simple_proposals.neighbour_groups
    return found


def compared_proposals(
    config: Config, methods: Mapping[tuple[str, int], DrawGroups], console: Console
) -> pd.DataFrame:
    """One row per network, method and seed: ``excess`` over the best plan known, as a share."""
    rows = []
    networks = [(size, at) for size in config.num_domains for at in range(config.num_worlds)]
    for size, index in rich_progress.track(networks, "proposing", console=console):
        world = suite(_SUITE).with_domains(size).world(index, config.seed)
        topology = world.topology.at_start()
        known = plan_worlds.plan_world(topology, topology, world.workload)
        for (method, seed), log_cost in _log_costs(config, methods, known):
            rows.append(
                {
                    "network": f"{world.name}-{size}",
                    "num_domains": size,
                    "method": method,
                    "seed": seed,
                    "excess": float(np.expm1(log_cost)),
                }
            )
    return pd.DataFrame(rows)


def _log_costs(
    config: Config, methods: Mapping[tuple[str, int], DrawGroups], world: PlanWorld
) -> Iterator[tuple[tuple[str, int], float]]:
    """Logarithm of the best plan of each method over that of the best known."""
    begun, costs = [], {}
    for (method, seed), propose in methods.items():
        rng = np.random.default_rng([config.seed, seed])
        groups = propose(world, config.proposals, rng)
        found = plan_worlds.looked_ahead(world, groups, budget=config.look_ahead, rng=rng)
        best = min(found, key=lambda one: found[one])
        costs[method, seed] = found[best]
        begun.append(best)
    rng = np.random.default_rng(config.seed)
    known = plan_worlds.looked_ahead(world, begun, budget=_LONG_LOOK_AHEAD, rng=rng)
    least = min(known.values())
    for name, cost in costs.items():
        yield name, cost - least


def _table(frame: pd.DataFrame) -> Table:
    """Excess by method and number of domains."""
    table = rich_table.Table(
        title="excess over the best plan known [%]: mean ± 95 % interval of logarithms / median"
    )
    sizes = sorted(frame["num_domains"].unique())
    table.add_column("proposals")
    for size in (*(f"K = {size}" for size in sizes), "all"):
        table.add_column(size, justify="right")
    for method in frame["method"].unique():
        own = frame[frame["method"] == method]
        cells = [_cell(own[own["num_domains"] == size]) for size in sizes]
        table.add_row(method, *cells, _cell(own))
    return table


def _cell(own: pd.DataFrame) -> str:
    """Geometric mean of the ratio of times less 1, its interval, and the median."""
    logs = np.log1p(own.pivot(index="seed", columns="network", values="excess").to_numpy())
    found = intervals.over_seeds_and_networks(logs)
    median = 100 * float(own["excess"].median())
    return f"{100 * np.expm1(found.mean):.1f} ± {100 * found.half_width:.1f} / {median:.1f}"


def _verdicts(frame: pd.DataFrame) -> Iterator[str]:
    """Verdicts on learning against each other method, over all networks."""
    wide = frame.assign(log=np.log1p(frame["excess"])).pivot(
        index=["method", "seed"], columns="network", values="log"
    )
    for other in (NEIGHBOURS, RANDOM, UNTRAINED):
        gain = (wide.loc[LEARNED] - wide.loc[other]).to_numpy()
        found = intervals.over_seeds_and_networks(gain)
        verdict = (
            "inconclusive"
            if abs(found.mean) <= found.half_width
            else ("quicker" if found.mean < 0 else "slower")
        )
        yield (
            f"learned against {other}: {100 * np.expm1(found.mean):+.1f} % of the time of a step "
            f"(logarithm {found.mean:+.3f} ± {found.half_width:.3f}): {verdict}"
        )

"""Worth of a learned move policy among plans of all families, trained here, against fixed rules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from des.base.checks import require_count, require_seed
from des.base.command import EXIT_CODES
from des.base.commands import command
from des.base.flags import option, to_dict
from des.base.lazy import lazy_imports
from scenarios.frame.files import write_csv
from scenarios.frame.outputs import OutputFlags, write_outputs
from scenarios.frame.run_folder import RunFolder

with lazy_imports(__name__):
    import pandas as pd
    from rich import progress as rich_progress
    from rich import table as rich_table
    from rich.console import Console

    from agents.hi_ppo.moves import move_policy
    from agents.hi_ppo.moves.move_env import MoveGame
    from agents.ppo import devices
    from des.base import console as base_console
    from des.base.parallel_map import ParallelMap
    from scenarios.study.ablations import ablations_page, move_games
    from scenarios.train import workplace


PROG = "python -m scenarios.ablations.moves"

LEARNED, UNTRAINED = "learned", "untrained"
_JUDGED = ("sites_calm", "sites_held", "sites_hard")
_SHORT = {"num_worlds": 4, "num_judged": 2, "updates": 2}

_EPILOG = f"""\
A policy is trained for each seed, by PPO, on worlds of sites_train whose links move: in every epoch
it names how far to move (nothing, schedule, split, order, groups of domains, family), for how many
epochs a change must pay, and whether links are expected to return to their mean. It chooses among
the best plans of each family that searches of some of an episode's networks find, all known from
the first epoch on; changes cost what it takes to move what is held. It is judged on worlds of
{", ".join(_JUDGED)} against untrained weights and fixed rules. The best single rule is
chosen on the training worlds; the clairvoyant knows the whole episode.

examples:
  {PROG} --workers 2 --out runs/moves
  {PROG} --quick --out runs/moves_quick

files written to --out: config.json; moves-SEED.safetensors and .csv, the policy of each seed and
the log of its updates; moves.csv (--parquet: also as Parquet), report.html and its
picture (--figures)

exit codes: 0 done; 2 a flag is wrong or the folder holds files; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of the comparison."""

    out: Path = option(Path("runs/moves"), "new or empty folder of the run")
    seeds: tuple[int, ...] = option((0, 1, 2), "seeds of the trainings")
    num_worlds: int = option(120, "training worlds")
    num_draws: int = option(2, "episodes of each training world")
    num_variants: int = option(
        2, "variants of these episodes, with other strides, prices and plans"
    )
    num_judged: int = option(64, "evaluation worlds of each suite, an episode each")
    updates: int = option(150, "updates of each policy")
    seed: int = option(5, "seed of the evaluation worlds; training worlds have the next one")
    quick: bool = option(False, "a minute; too little to claim anything")
    workers: int = option(1, "processes that make episodes; they change nothing but the time")

    def __post_init__(self) -> None:
        for name in ("num_worlds", "num_draws", "num_judged", "updates", "workers"):
            require_count(PROG, name, getattr(self, name))
        for name, numbers in (
            ("seed", [self.seed]),
            ("num_variants", [self.num_variants]),
            ("seeds", self.seeds),
        ):
            for number in numbers:
                require_seed(PROG, name, number)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            given = ",".join(map(str, self.seeds)) or "none"
            raise ValueError(f"{PROG}: seeds must be one or more, each once; got {given}")

    def size(self, name: str) -> int:
        """Number by the name of its flag, that of a short run with ``--quick``."""
        return int(_SHORT[name] if self.quick and name in _SHORT else getattr(self, name))


@command(Config, PROG, __doc__, _EPILOG)
def main(config: Config) -> None:
    """Run the command on its settings."""
    choice = config.choice()
    devices.use_torch_threads(1)
    console = base_console.FittedConsole()
    with (
        RunFolder.created(config.out, to_dict(config)) as folder,
        workplace.workplace(config.workers) as at_work,
    ):
        frame, rule = compare_moves(config, console, folder.path, at_work)
        lines = list(_lines(frame, rule))
        page = ablations_page.comparison_report(
            config,
            PROG,
            frame.assign(excess=100.0 * frame["excess"]),
            by="method",
            value="excess",
            label="time of an episode over the clairvoyant's [%]",
            title="A learned move policy among plans of all families",
            question="Is learning when to move worth more than a fixed rule?",
            lines=lines,
        )
        write_outputs(folder.path, choice, page, {"moves": frame})
    ablations_page.show_verdicts(
        console, _table(frame), lines, frame=frame, csv=config.out / "moves.csv"
    )


def compare_moves(
    config: Config, console: Console, out: Path, at_work: ParallelMap = map
) -> tuple[pd.DataFrame, str]:
    """One row per world, method and seed, and the best single rule on the training worlds.

    ``excess`` is the time of the episode over that of the clairvoyant, less 1; fixed rules have the
    seed 0. Policies and logs of their updates are written to ``out``.
    """
    training = move_games.training_worlds(
        config.size("num_worlds"), config.seed + 1, config.num_draws, config.num_variants
    )
    games = list(_made(training, "training worlds", console, at_work))
    drawn = [game for own in games for game in own.drawn]
    rule = min(
        move_games.FIXED,
        key=lambda name: sum(
            move_games.excess_of_rule(game, move_games.FIXED[name]) for game in drawn
        ),
    )
    judged = [
        move_games.WorldGames(suite=name, index=index, seed=config.seed)
        for name in _JUDGED
        for index in range(config.size("num_judged"))
    ]
    held_out = list(_made(judged, "evaluation worlds", console, at_work))
    episodes = {
        f"{one.suite}-{one.index:04}": (one.suite, own.drawn[0])
        for one, own in zip(judged, held_out, strict=True)
        if own.drawn
    }
    if not episodes:
        raise ValueError(
            f"{PROG}: num_judged must give a world with several plans, got "
            f"{config.size('num_judged')} with seed {config.seed}"
        )
    every = [game for own in games for game in (*own.drawn, *own.varied)]
    rows = [*_rows_of_rules(episodes), *_rows_of_policies(config, every, episodes, console, out)]
    return pd.DataFrame(rows), rule


def _made(
    worlds: Sequence[move_games.WorldGames], name: str, console: Console, at_work: ParallelMap
) -> Iterable[move_games.EpisodeGames]:
    found = at_work(move_games.games_of, worlds)
    return rich_progress.track(found, name, total=len(worlds), console=console)


def _rows_of_rules(episodes: Mapping[str, tuple[str, MoveGame]]) -> Iterator[dict[str, object]]:
    for name, (suite, game) in episodes.items():
        row = {"network": name, "suite": suite, "seed": 0}
        for rule, number in move_games.FIXED.items():
            yield {**row, "method": rule, "excess": move_games.excess_of_rule(game, number)}


def _rows_of_policies(
    config: Config,
    games: Sequence[MoveGame],
    episodes: Mapping[str, tuple[str, MoveGame]],
    console: Console,
    out: Path,
) -> Iterator[dict[str, object]]:
    """Train each seed and write its policy; rows of its first weights and of the trained ones."""
    for seed in rich_progress.track(config.seeds, "trainings", console=console):
        trainer = move_games.trainer_of(games, config.size("updates"), seed)
        for method in (UNTRAINED, LEARNED):
            if method == LEARNED:
                updates = [asdict(update) for update in trainer.run()]
                write_csv(out / f"moves-{seed}.csv", pd.DataFrame(updates))
                move_policy.MovePolicy(network=trainer.network).save(
                    out / f"moves-{seed}.safetensors"
                )
            network = trainer.network.eval()
            for name, (suite, game) in episodes.items():
                excess = move_games.excess_of_network(game, network)
                row = {"network": name, "suite": suite, "seed": seed}
                yield {**row, "method": method, "excess": excess}


def _table(frame: pd.DataFrame) -> rich_table.Table:
    """Excess by method and suite."""
    table = rich_table.Table(
        title="time of an episode over the clairvoyant's [%]: mean ± 95 % interval"
    )
    table.add_column("moves")
    suites = list(frame["suite"].unique())
    for name in (*suites, "all"):
        table.add_column(name, justify="right")
    for method in frame["method"].unique():
        own = frame[frame["method"] == method]
        parts = [*(own[own["suite"] == name] for name in suites), own]
        table.add_row(method, *(_show(part) for part in parts))
    return table


def _show(part: pd.DataFrame) -> str:
    """Mean and interval in percent."""
    found = ablations_page.over_seeds_and_networks(100.0 * _wide(part).to_numpy())
    spread = f" ± {found.half_width:.2f}" if math.isfinite(found.half_width) else ""
    return f"{found.mean:.2f}{spread}"


def _wide(part: pd.DataFrame) -> pd.DataFrame:
    return part.pivot(index="seed", columns="network", values="excess")


def _lines(frame: pd.DataFrame, rule: str) -> Iterator[str]:
    """Distance of the best rule to the clairvoyant, and the part of it that learning gains."""
    of = {name: 100.0 * _wide(own) for name, own in frame.groupby("method")}
    there = ablations_page.over_seeds_and_networks(of[rule].to_numpy())
    yield (
        f"{rule}, the best single rule on the training worlds, takes {there.mean:.2f} ± "
        f"{there.half_width:.2f} % more time than the clairvoyant: no policy can gain more"
    )
    for other in (rule, UNTRAINED):
        gain = of[LEARNED].to_numpy() - of[other].to_numpy()
        found = ablations_page.over_seeds_and_networks(gain)
        is_shown = abs(found.mean) > found.half_width
        verdict = ("less" if found.mean < 0 else "more") if is_shown else "no difference is shown"
        points = f"{found.mean:+.2f} ± {found.half_width:.2f} points"
        yield f"learned against {other}: {points} of the time: {verdict}"

"""Train the flat policy with several seeds and show how far the seeds spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.flags import option
from des.base.lazy import lazy_imports
from des.base.names import counted
from des.base.speaking import SPEAKER
from des.job.models import layers_note
from des.worlds.world_flags import ModelFlags, NetworkFlag
from scenarios.frame.files import read_csv
from scenarios.frame.outputs import OutputFlags, repetition_of, write_outputs
from scenarios.frame.report import PageTable, Report
from scenarios.frame.run_folder import RunFolder
from scenarios.frame.run_lock import lock_folder

with lazy_imports(__name__):
    import pandas as pd
    from rich import table as rich_table

    from des.base import console as base_console
    from scenarios.frame import metrics_log, plots, statistics
    from scenarios.train import sweep_grid
    from scenarios.train.sweep_grid import TrainingPoint


PROG = "python -m scenarios.compare_seeds"
_EPILOG = f"""\
examples:
  {PROG} --model llama2_7b --seeds 0,1,2 --out runs/seeds
  {PROG} --quick --out runs/try

exit codes: 0 every seed is within --largest-gap; 1 one is not; 2 a flag or a folder is wrong;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ModelFlags, NetworkFlag, OutputFlags):
    """Flags of a comparison of trainings."""

    seeds: tuple[int, ...] = option((0, 1, 2), "training seeds")
    steps: int = option(1_000_000, "decisions to train each seed on")
    largest_gap: float = option(
        0.02, "largest gap to exact, a fraction; above it the exit code is 1"
    )
    out: Path = option(
        Path("runs/seeds"), "folder of one run per seed; existing runs are continued"
    )
    quick: bool = option(False, "runs of seconds that show all steps and learn little")

    def __post_init__(self) -> None:
        if len(set(self.seeds)) != len(self.seeds) or not self.seeds:
            raise UsageError(f"{PROG}: seeds must be one or more different ones, got {self.seeds}")


@command(Config, PROG, __doc__, _EPILOG)
def main(config: Config) -> int:
    """Run the command on its settings."""
    choice = config.choice()
    SPEAKER.note(layers_note(config.workload(1)))
    points = {seed: _point(config, seed) for seed in config.seeds}
    sweep_grid.refuse_other_runs(points.values(), PROG)
    config.out.mkdir(parents=True, exist_ok=True)
    with lock_folder(config.out):
        for point in points.values():
            code = sweep_grid.train_point(point)
            if code:
                return code
        evaluations = {
            seed: read_csv(point.folder.evaluation_csv) for seed, point in points.items()
        }
        table = seed_table(evaluations)
        page = _report(config, points, table)
        write_outputs(config.out, choice, page, {"seeds": table})
    DOCUMENT.add(rows=table, out=config.out)
    return _show(config, table)


def seed_table(evaluations: dict[int, pd.DataFrame]) -> pd.DataFrame:
    """One row per seed, with the figures of `scenarios.train.sweep_grid.policy_figures`."""
    rows = [
        {"seed": seed, **sweep_grid.policy_figures(evaluation)}
        for seed, evaluation in evaluations.items()
    ]
    return pd.DataFrame(rows)


def _report(config: Config, points: Mapping[int, TrainingPoint], table: pd.DataFrame) -> Report:
    logs = {
        f"seed {seed}": metrics_log.read_metrics(point.folder.metrics_csv)
        for seed, point in points.items()
    }
    columns = [column for column in table.columns if column != "seed"]
    spread = {column: statistics.mean_and_interval(table[column].to_numpy()) for column in columns}
    said = "; ".join(
        f"{column.replace('_', ' ')} {_cell(column, one.mean)}"
        + (f" ± {_cell(column, one.half_width)}" if one.spread_text else "")
        for column, one in spread.items()
    )
    return Report(
        title=f"The flat policy over {counted(len(points), 'seed')}",
        question="How far do trainings spread over seeds?",
        answer=f"Mean and half the 95 % interval: {said}.",
        repeat=repetition_of(PROG, config),
        tables=(
            PageTable(
                title="Seeds",
                head=("seed", *(column.replace("_", " ") for column in columns)),
                rows=tuple(
                    (str(int(row["seed"])), *(_cell(column, row[column]) for column in columns))
                    for row in table.to_dict("records")
                ),
            ),
        ),
        figures=(plots.seed_curves(logs, title="Learning curves"),),
    )


def _point(config: Config, seed: int) -> TrainingPoint:
    flags = ["--seed", str(seed), "--network", config.network, "--model", config.model]
    flags += [] if config.num_layers is None else ["--num-layers", str(config.num_layers)]
    flags += ["--sequence-length", str(config.sequence_length)]
    flags += ["--quick"] if config.quick else ["--steps", str(config.steps)]
    folder = RunFolder(path=config.out / f"seed{seed}")
    return sweep_grid.TrainingPoint(flags=tuple(flags), folder=folder)


def _show(config: Config, table: pd.DataFrame) -> int:
    console = base_console.FittedConsole()
    shown = rich_table.Table()
    shown.add_column("seed")
    columns = [column for column in table.columns if column != "seed"]
    for column in columns:
        shown.add_column(column.replace("_", " "), justify="right")
    for row in table.to_dict("records"):
        shown.add_row(str(int(row["seed"])), *(_cell(column, row[column]) for column in columns))
    spread = {column: statistics.mean_and_interval(table[column].to_numpy()) for column in columns}
    shown.add_section()
    shown.add_row("mean", *(_cell(column, spread[column].mean) for column in columns))
    if len(table) > 1:
        shown.add_row("± 95 %", *(_cell(column, spread[column].half_width) for column in columns))
    console.print(shown)
    if "excess_over_exact" not in table:
        console.print("There is no exact optimum to compare with: the case is too large.")
        return 0
    gap = table["excess_over_exact"]
    met = bool((gap <= config.largest_gap).all())
    console.print(
        f"{'Met' if met else 'MISSED'}: the policy takes {100 * gap.min():+.2f} to "
        f"{100 * gap.max():+.2f} % longer than exact over {counted(len(gap), 'seed')}; "
        f"allowed {100 * config.largest_gap:+.2f} % for every seed.",
        soft_wrap=True,
    )
    return 0 if met else 1


def _cell(column: str, value: float) -> str:
    return f"{100 * value:+.3f} %" if column.startswith("excess") else f"{value:.4f}"

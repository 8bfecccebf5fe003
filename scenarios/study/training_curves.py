"""Draw the training curves of Hi-PPO's placement policy, one line per seed and their mean."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option
from des.base.lazy import lazy_imports
from des.base.names import counted
from des.figures.figure import Figure
from des.figures.panels import Axis, Panel
from scenarios.frame.files import read_csv, write_bytes

with lazy_imports(__name__):
    import pandas as pd

    from agents.ppo import shipped_weights
    from des.figures import paper
    from scenarios.frame import plots


PROG = "python -m scenarios.training_curves"

SMOOTHED_UPDATES = 25
"""Over how many updates the curves are averaged."""

_PANELS = (
    ("excess", "cost of drawn orders over the best found"),
    ("depth_regret", "regret of depth"),
    ("entropy", "entropy"),
)

_COLUMNS = ("update", "mean_cost", "found_cost", "depth_regret", "entropy")
_MOST = 1e100
"""Greatest number of a log, far from the end of floats."""

_EPILOG = f"""\
The excess is in logarithms of what the preference weighs: 0.01 is one per cent of the time where
time alone counts. Networks get larger on the way, see the curriculum in docs/hi-ppo.md.

examples:
  {PROG}
  {PROG} --logs runs/a/placement.csv,runs/b/placement.csv --out curves.png

exit codes: 0 done; 2 a log cannot be read; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of the training curves."""

    logs: tuple[str, ...] | None = option(
        None, "logs placement.csv of runs; none: those of the shipped policies"
    )
    out: Path = option(Path("training_curves.png"), "picture to write")


@command(Config, PROG, __doc__, _EPILOG)
def main(config: Config) -> None:
    """Run the command on its settings."""
    paths = shipped_logs() if config.logs is None else [Path(text) for text in config.logs]
    if not paths:
        raise UsageError(f"{PROG}: --logs must be given, as no policies are shipped")
    logs = {str(path): read_log(path) for path in paths}
    write_bytes(config.out, paper.image_bytes(training_curves(logs), _format(config.out)))
    for name, log in logs.items():
        last = float(log["excess"].tail(SMOOTHED_UPDATES).mean())
        sys.stdout.write(f"{name}: {len(log)} updates, excess {last:.4f} at the end\n")
    DOCUMENT.add(picture=config.out, logs=list(logs))
    sys.stdout.write(f"picture: {config.out}\n")


def _format(path: Path) -> str:
    """Format of a picture by the ending of its name; PNG where it has none."""
    ending = path.suffix.removeprefix(".").lower() or "png"
    if ending not in ("png", "pdf", "svg"):
        raise UsageError(f"{PROG}: out must end in .png, .pdf or .svg, got {path}")
    return ending


def shipped_logs() -> list[Path]:
    """Logs of the shipped policies, by seed."""
    return sorted(shipped_weights.SHIPPED.glob("hi_ppo-*-placement.csv"))


def read_log(path: Path) -> pd.DataFrame:
    """Read the log of a training, with the column ``excess``.

    Raises
    ------
    ValueError
        If it has no rows, lacks a column or has one that is not of numbers, naming the file.
    """
    log = read_csv(path)
    missing = sorted(set(_COLUMNS) - set(log.columns))
    if missing or log.empty:
        lacking = ", ".join(missing) or "rows"
        raise ValueError(f"log {path}: must be that of a placement policy, got no {lacking}")
    for name in _COLUMNS:
        if log[name].dtype.kind not in "if" or not (log[name].abs() <= _MOST).all():
            raise ValueError(f"log {path}: {name} must be numbers of at most {_MOST:g}, got others")
    return log.assign(excess=log["mean_cost"] - log["found_cost"])


def training_curves(logs: Mapping[str, pd.DataFrame]) -> Figure:
    """Return logs of equal length, smoothed, their mean and its 95 % band over seeds.

    Raises
    ------
    ValueError
        If there is none, or they are of different lengths.
    """
    lengths = {len(log) for log in logs.values()}
    if len(lengths) != 1:
        raise ValueError(
            f"training curves: logs must be one or more of equal length, got {sorted(lengths)}"
        )
    last = float(np.mean([log["excess"].tail(SMOOTHED_UPDATES).mean() for log in logs.values()]))
    return Figure(
        name="training_curves",
        title=f"Training of the placement policy: {counted(len(logs), 'seed')}, and their mean",
        seen=f"Excess, regret of depth and entropy over {lengths.pop()} updates; at the end drawn "
        f"orders cost {100 * last:.2f} % more than the best found, on the mean over seeds.",
        panels=tuple(_panel(logs, column, label) for column, label in _PANELS),
        shares_x=True,
    )


def _panel(logs: Mapping[str, pd.DataFrame], column: str, label: str) -> Panel:
    curves = np.stack([smoothed(log[column].to_numpy(dtype=float)) for log in logs.values()])
    updates = tuple(next(iter(logs.values()))["update"].astype(float))
    x = Axis(label="update", is_counted=True)
    return Panel(x=x, y=Axis(), marks=plots.seed_lines(updates, curves), title=label, height=1.7)


def smoothed(values: np.ndarray, window: int = SMOOTHED_UPDATES) -> np.ndarray:
    """Mean of the last ``window`` values at each, fewer at the start.

    Examples
    --------
    >>> smoothed(np.array([1.0, 3.0, 5.0]), window=2).tolist()
    [1.0, 2.0, 4.0]
    """
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - window)
    means: np.ndarray = (sums[ends] - sums[starts]) / (ends - starts)
    return means

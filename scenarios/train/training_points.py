"""Trainings that are compared: each is a run folder of its own, continued where it stands."""

import traceback
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from des.base.command import UsageError, exit_code_of
from scenarios.frame.run_folder import RunFolder
from scenarios.train import flat_command
from scenarios.train.outcome import POLICY
from scenarios.train.training_config import PROG, recorded

REFERENCES = ("exact", "uniform", "single_domain")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPoint:
    """One training of a comparison: the flags of the scenario but ``--out``, and its folder."""

    flags: tuple[str, ...]
    folder: RunFolder

    @property
    def arguments(self) -> list[str]:
        """Command line of the scenario."""
        return [*self.flags, "--out", str(self.folder.path)]

    @property
    def log(self) -> Path:
        """Output of the training, where it is not shown."""
        return self.folder.path.with_name(f"{self.folder.path.name}.log")

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.folder.report_html.exists()


def refuse_other_runs(points: Iterable[TrainingPoint], prog: str) -> None:
    """Raise ``UsageError`` if a point's folder holds a run of other settings."""
    for point in points:
        if not point.folder.config_json.exists():
            continue
        wanted = recorded(flat_command.resolve(point.arguments)[0])
        found = point.folder.read_config()
        for name, value in wanted.items():
            if found.get(name) != value:
                raise UsageError(
                    f"{prog}: {point.folder.path} must hold a run with {name} {value!r}, "
                    f"got one with {found.get(name)!r}; choose another --out"
                )


def train_point(point: TrainingPoint) -> int:
    """Train from where the point stands and return the exit code; a finished one stays as it is."""
    if point.finished:
        return 0
    begun = point.folder.config_json.exists()
    arguments = ["--resume", "--out", str(point.folder.path)] if begun else point.arguments
    return exit_code_of(lambda: flat_command.run([*arguments, "--no-kpi"], PROG))


def train_point_unseen(point: TrainingPoint) -> str | None:
    """Train with everything that is printed in the point's log; say why it failed, or None."""
    point.log.parent.mkdir(parents=True, exist_ok=True)
    with (
        point.log.open("a", encoding="utf-8", buffering=1) as log,
        redirect_stdout(log),
        redirect_stderr(log),
    ):
        try:
            code = train_point(point)
        except Exception as error:  # noqa: BLE001 - reported; the others continue
            traceback.print_exc()
            return f"{type(error).__name__}: {error}"
    if code == 0:
        return None
    *_, last = point.log.read_text(encoding="utf-8").splitlines() or [f"exit code {code}"]
    return last.removeprefix("error: ")


def policy_figures(evaluation: pd.DataFrame) -> dict[str, float]:
    """Mean iteration time of the policy, and its excess over each reference.

    The excess is of means over the same draws: 0.01 says that the policy takes 1 % longer.
    """
    times_s = evaluation.groupby("planner")["iteration_time_s"].mean()
    figures = {"iteration_time_s": float(times_s[POLICY])}
    for reference in REFERENCES:
        if reference in times_s:
            figures[f"excess_over_{reference}"] = float(times_s[POLICY] / times_s[reference] - 1)
    return figures

"""Trainings that are compared, each in a run folder of its own, and the grid of a sweep."""

import re
import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pandas as pd

from des.base.checks import prefixed_errors, require_known
from des.base.command import UsageError, exit_code_of
from des.base.fields import from_text, kinds_of
from scenarios.frame.run_folder import RunFolder
from scenarios.train import flat_command
from scenarios.train.outcome import POLICY
from scenarios.train.training_config import PROG, WHERE_RUN, Config, recorded

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


NOT_VARIED = WHERE_RUN | {"policy", "seed", "quick"}
"""Fields of the scenario that are no settings: how a run is done, and what has its own flag."""

_KINDS = {name: kind for name, kind in kinds_of(Config).items() if name not in NOT_VARIED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One training of a sweep; ``settings`` are the varied fields and their values as text."""

    settings: Mapping[str, str]
    seed: int
    point: TrainingPoint

    @property
    def name(self) -> str:
        """Display name."""
        return ", ".join([*_equations(self.settings), f"seed {self.seed}"])


def trials_of(
    vary: Sequence[str], *, seeds: Sequence[int], flags: Sequence[str], out: Path
) -> list[Trial]:
    """All trials, each checked as far as can be before it is trained.

    Parameters
    ----------
    vary
        Texts such as ``learning_rate=1e-3,3e-4``; a list is written ``hidden_sizes=64x64,128``.
    flags
        Of the scenario, the same for all.

    Raises
    ------
    UsageError
        If a field or value is unknown, given twice, or makes no task.

    Examples
    --------
    >>> trials = trials_of(["steps=64,128"], seeds=[7], flags=["--quick"], out=Path("runs"))
    >>> [trial.point.folder.path.as_posix() for trial in trials]
    ['runs/steps=64/seed7', 'runs/steps=128/seed7']
    """
    varied = _vary(vary)
    trials = []
    for texts in product(*varied.values()):
        settings = dict(zip(varied, texts, strict=True))
        several = [_trial(settings, seed, flags, out) for seed in seeds]
        _require_task(several[0])
        trials += several
    names: dict[Path, str] = {}
    for trial in trials:
        path = trial.point.folder.path
        if path in names:
            raise UsageError(f"sweep: {path} would be the folder of {names[path]} and {trial.name}")
        names[path] = trial.name
    return trials


def _equations(settings: Mapping[str, str]) -> list[str]:
    return [f"{field}={text}" for field, text in settings.items()]


def _trial(settings: Mapping[str, str], seed: int, flags: Sequence[str], out: Path) -> Trial:
    varied = [
        f"--{field.replace('_', '-')}={_flag_text(field, text)}" for field, text in settings.items()
    ]
    folder = re.sub(r"[^\w.,=+-]+", "_", ",".join(_equations(settings)))
    return Trial(
        settings=settings,
        seed=seed,
        point=TrainingPoint(
            flags=(*flags, *varied, f"--seed={seed}"),
            folder=RunFolder(path=out / folder / f"seed{seed}"),
        ),
    )


def _require_task(trial: Trial) -> None:
    """Read the files and names that the trial needs, as its training will."""
    with prefixed_errors(f"sweep: {trial.name}: ", UsageError):
        config, _ = flat_command.resolve(trial.point.arguments)
        flat_command.make_scenario_task(config)


def _flag_text(field: str, text: str) -> str:
    """Return a value as the scenario's flag has it, where commas are within a list."""
    return text.replace("x", ",") if _KINDS[field].is_tuple else text


def _vary(vary: Sequence[str]) -> dict[str, list[str]]:
    """Values of each varied field in the spelling of Python, so that equal ones are found."""
    varied: dict[str, list[str]] = {}
    for given in vary:
        field, _, texts = given.partition("=")
        require_known("sweep: vary: unknown field", field, _KINDS, UsageError)
        if field in varied:
            raise UsageError(f"sweep: vary: {field} is given twice")
        varied[field] = []
        for text in texts.split(","):
            spelt = _spelt(field, text)
            if spelt in varied[field]:
                raise UsageError(f"sweep: vary: {field} {spelt} is given twice")
            varied[field].append(spelt)
    return varied


def _spelt(field: str, text: str) -> str:
    with prefixed_errors(f"sweep: vary: {field} ", UsageError):
        value = from_text(_flag_text(field, text), _KINDS[field])
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)

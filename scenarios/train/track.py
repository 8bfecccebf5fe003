"""Store a run folder in MLflow: its settings, its series by update, its files."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path

from des.base.command import EXIT_CODES
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.extras import require_extra
from des.base.flags import JsonFlag, option, required

PROG = "python -m scenarios.track"
_EPILOG = f"""\
Every run folder can be stored, also one that is not finished: stored again, it takes the place of
what was stored of it before. Weights and stores of runs are left out. Needs the extra [mlflow]:
pip install 'eastwest[mlflow]'. TensorBoard reads the folder tensorboard/ of a training as it is.

examples:
  {PROG} runs/east_west-000
      into the folder mlruns
  {PROG} runs/hi_ppo --uri http://localhost:5000 --experiment hi_ppo

exit codes: 0 done; 2 the folder holds no run, or the server refuses; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of a stored run."""

    folder: Path = required("run folder", is_positional=True)
    uri: str = option("mlruns", "where MLflow keeps runs: a folder, a server or a database")
    experiment: str = option("eastwest", "experiment that the run belongs to")


@command(Config, PROG, __doc__, _EPILOG)
def main(config: Config) -> None:
    """Run the command on its settings."""
    require_extra(PROG, "mlflow")
    runs = importlib.import_module("scenarios.train.mlflow_runs")
    run_id, num_figures = runs.store_run(
        config.folder, uri=config.uri, experiment=config.experiment
    )
    DOCUMENT.add(run=run_id, num_figures=num_figures, uri=config.uri)
    sys.stdout.write(
        f"{config.folder}: {num_figures} figures as run {run_id} of {config.experiment} in "
        f"{config.uri}\n"
    )

"""A run folder as a run of MLflow: settings, series by update, files."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from des.base.text_files import read_json
from scenarios.frame.files import read_csv
from scenarios.frame.run_folder import RunFolder

FOLDER_TAG = "eastwest.folder"
"""Tag with the path of the run folder, by which a run is found again."""

FOLDERS_ALLOWED = "MLFLOW_ALLOW_FILE_STORE"
"""Variable without which MLflow 3 keeps no runs in a plain folder."""

_BATCH = 1000
_LONGEST_PARAM = 6000
_LEFT_OUT = {".safetensors", ".sqlite"}


def store_run(path: Path, *, uri: str, experiment: str) -> tuple[str, int]:
    """Store a run folder in place of what was stored of it before.

    Returns
    -------
    tuple of str and int
        Identifier of the run of MLflow, and how many figures its series have.

    Raises
    ------
    ValueError
        If the folder holds no run, a file of it is wrong, or the server refuses.
    """
    folder = RunFolder.open_existing(path)
    record = read_json(folder.config_json)
    assert isinstance(record, Mapping), "checked when the folder was opened"
    metrics = [metric for csv in sorted(path.glob("*.csv")) for metric in _series(csv)]
    os.environ.setdefault(FOLDERS_ALLOWED, "true")
    try:
        client = MlflowClient(tracking_uri=uri)
        run_id = _new_run(client, path, experiment)
        params = [
            Param(name, str(value)[:_LONGEST_PARAM]) for name, value in folder.read_config().items()
        ]
        tags = [
            RunTag(f"eastwest.{name}", str(record[name]))
            for name in ("versions", "source_revision")
        ]
        client.log_batch(run_id, params=params, tags=tags)
        for first in range(0, len(metrics), _BATCH):
            client.log_batch(run_id, metrics=metrics[first : first + _BATCH])
        for file in sorted(path.iterdir()):
            if file.is_file() and file.suffix not in _LEFT_OUT and not file.name.startswith("."):
                client.log_artifact(run_id, str(file))
        client.set_terminated(run_id)
    except (MlflowException, OSError) as error:
        raise ValueError(f"{uri}: cannot store the run: {error}") from error
    return run_id, len(metrics)


def _new_run(client: MlflowClient, path: Path, experiment: str) -> str:
    found = client.get_experiment_by_name(experiment)
    number = client.create_experiment(experiment) if found is None else found.experiment_id
    place = str(path.resolve())
    query = f"tags.`{FOLDER_TAG}` = '{place}'"
    for old in client.search_runs([number], filter_string=query):
        client.delete_run(old.info.run_id)
    run = client.create_run(number, tags={FOLDER_TAG: place}, run_name=path.name)
    return str(run.info.run_id)


def _series(path: Path) -> Iterator[Metric]:
    """Figures of a log with one row for each update, named after the log and the column."""
    frame = read_csv(path)
    if "update" not in frame:
        return
    columns = frame.select_dtypes("number").columns.drop("update")
    for row in frame.to_dict("records"):
        for column in columns:
            if row[column] == row[column]:  # a number that is there
                name = f"{path.stem}.{column}"
                yield Metric(name, float(row[column]), timestamp=0, step=int(row["update"]))

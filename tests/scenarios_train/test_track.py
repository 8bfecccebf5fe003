"""A run folder in MLflow: its settings, its series, once however often it is stored."""

import json
from importlib.util import find_spec

import pytest

from scenarios.train.track import main

RECORD = {"config": {"seed": 1, "model": "llama2_7b"}, "versions": {}, "source_revision": "a1"}


@pytest.fixture
def run_folder(tmp_path):
    """A run of two updates."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(RECORD))
    (folder / "metrics.csv").write_text("update,loss,name\n1,0.5,a\n2,0.25,b\n")
    (folder / "policy.safetensors").write_bytes(b"weights")
    return folder


def test_a_folder_without_a_run_and_a_missing_extra_are_named(tmp_path, capsys):
    named = "does not exist" if find_spec("mlflow") else r"pip install 'eastwest\[mlflow\]'"

    assert main([str(tmp_path / "none"), "--uri", str(tmp_path / "mlruns")]) == 2
    assert named in capsys.readouterr().err.replace("'eastwest[", r"'eastwest\[").replace(
        "]'", r"\]'"
    )
    assert not (tmp_path / "mlruns").exists()


@pytest.mark.skipif(find_spec("mlflow") is None, reason="needs the extra mlflow")
def test_a_run_is_stored_once(run_folder, tmp_path, capsys):
    uri = str(tmp_path / "mlruns")
    for _ in range(2):
        assert main([str(run_folder), "--uri", uri, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)

    client = pytest.importorskip("mlflow.tracking").MlflowClient(tracking_uri=uri)
    number = client.get_experiment_by_name("eastwest").experiment_id
    (run,) = client.search_runs([number])
    assert run.info.run_id == said["run"]
    assert run.data.params == {"seed": "1", "model": "llama2_7b"}
    history = client.get_metric_history(said["run"], "metrics.loss")
    assert [(each.step, each.value) for each in history] == [(1, 0.5), (2, 0.25)]
    assert {each.path for each in client.list_artifacts(said["run"])} == {
        "config.json",
        "metrics.csv",
    }

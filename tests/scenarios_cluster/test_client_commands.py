"""Client commands with JSON output, each one request to a scheduler in a process."""

import json

import pytest
from cluster_processes import scheduler

from scenarios.cluster.command import main


@pytest.fixture
def answer(tmp_path, capsys):
    """JSON answer of a command; the scheduler has no nodes."""
    with scheduler(tmp_path) as (_, flags):

        def said(*words):
            assert main([*words, "--socket", str(flags.socket), "--json"]) == 0
            return json.loads(capsys.readouterr().out)

        yield said


def test_a_job_is_submitted_shown_and_cancelled(answer, tmp_path):
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"launch_command": "true", "num_gpus": 2, "name": "small"}))

    assert answer("submit", str(path)) == {"job": 1}
    (waiting,) = answer("status")["jobs"]
    assert (waiting["name"], waiting["state"], waiting["num_gpus"]) == ("small", "waiting", 2)
    assert answer("cancel", "1") == {"job": 1, "is_cancelled": True}
    assert answer("status")["jobs"][0]["state"] != "waiting"


def test_a_missing_node_cannot_be_drained(answer, capsys):
    assert answer("status")["nodes"] == []
    with pytest.raises(AssertionError):
        answer("drain", "n7")
    assert "n7" in capsys.readouterr().err

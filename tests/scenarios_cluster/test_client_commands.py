"""Commands that ask a scheduler once, with a JSON document each, against a process of its own."""

import json

import pytest
from cluster_processes import scheduler

from scenarios.cluster.command import main


@pytest.fixture
def told(tmp_path, capsys):
    """What a command says as JSON; the scheduler has no nodes."""
    with scheduler(tmp_path) as (_, flags):

        def said(*words):
            assert main([*words, "--port", str(flags.port), "--json"]) == 0
            return json.loads(capsys.readouterr().out)

        yield said


def test_a_job_is_handed_in_shown_and_cancelled(told, tmp_path):
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"launch_command": "true", "num_gpus": 2, "name": "small"}))

    assert told("submit", str(path)) == {"job": 1}
    (waiting,) = told("status")["jobs"]
    assert (waiting["name"], waiting["state"], waiting["num_gpus"]) == ("small", "waiting", 2)
    assert told("cancel", "1") == {"job": 1, "is_cancelled": True}
    assert told("status")["jobs"][0]["state"] != "waiting"


def test_a_node_that_is_not_there_cannot_be_drained(told, capsys):
    assert told("status")["nodes"] == []
    with pytest.raises(AssertionError):
        told("drain", "n7")
    assert "n7" in capsys.readouterr().err

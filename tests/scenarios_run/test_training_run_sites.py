"""Training runs on moving worlds of real sites, decided by the search over all families."""

import json

import pytest

from des import write_topology
from scenarios.run.command import main
from scenarios.suites import suite


@pytest.mark.parametrize(
    ("name", "index"), [("sites_calm", 40), ("sites_held", 0), ("sites_hard", 0)]
)
def test_a_training_runs_on_sites_of_a_suite(name, index, tmp_path):
    """Two epochs, each of which ends with the iteration that its time is up in."""
    world = suite(name).with_domains(2).world(index)
    network, out = tmp_path / "sites.yaml", tmp_path / "out"
    write_topology(network, world.topology)
    shape = world.workload.shape
    flags = ["--network", str(network), "--model", world.workload.name, "--planner", "decide"]
    flags += ["--microbatches", str(world.workload.num_microbatches), "--epochs", "2"]
    flags += ["--microbatch-size", str(int(shape.batch_size)), "--epoch-s", "300"]
    flags += ["--figures", ""]

    assert main([*flags, "--out", str(out)]) == 0
    result = json.loads((out / "result.json").read_text())
    assert result["num_iterations"] >= 2
    assert result["total_s"] >= 600.0

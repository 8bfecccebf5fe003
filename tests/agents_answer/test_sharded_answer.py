"""Answers of ``python -m agents.decide`` whose copies share the optimiser's state."""

import json
from dataclasses import replace

import pytest

from agents.decide import main
from des import build_workload, read_topology
from des.world.files.topology_writer import to_yaml

WORLD = replace(read_topology("east_central_west"), movement=None)
JOB = ("--trainer", "ideal", "--model", "llama2_7b", "--microbatches", "8", "--across-only")
FEW = ("--network", "east_central_west", *JOB, "--deciders", "search", "--max-judged", "500")


def test_copies_that_share_the_optimiser_can_be_given_back_as_the_plan_in_force(tmp_path, capsys):
    """Each of three copies has 4 of 12 bytes of a parameter; one that is to have all lacks 8."""
    path = tmp_path / "small.yaml"
    domains = tuple(replace(one, gpu_memory_bytes=10e9) for one in WORLD.domains)
    path.write_text(to_yaml(replace(WORLD, domains=domains)), encoding="utf-8")
    small = ("--network", str(path), "--families", "replicas")

    def said(*flags: str) -> str:
        assert main([*FEW, *flags]) == 0
        return capsys.readouterr().out

    page, answer = said(*small), json.loads(said(*small, "--json"))

    assert "\n  optimiser state sharded over the 3 copies: after every step gradients are " in page
    assert answer["optimiser_sharded"]
    last = ["--last", answer["placement"], "--last-schedule", answer["schedule"], "--last-sharded"]
    last += ["--last-microbatch-size", str(answer["microbatch_size"])]
    if answer["bucket_bytes"] is not None:
        last += ["--last-bucket-bytes", str(answer["bucket_bytes"])]
    kept = json.loads(said(*small, *last, "--json"))
    assert (kept["change_s"], kept["placement"]) == (0.0, answer["placement"])
    moved = json.loads(said(*last, "--json", "--families", "single"))
    num_parameters = sum(build_workload("llama2_7b").num_parameters)
    assert moved["change"]["num_bytes"] == pytest.approx(8 * num_parameters)

"""Folders for ASTRA-sim's ns-3: hosts, gateways, thresholds, and what is refused before a run."""

import json
from dataclasses import replace

import pytest

from calibration.cases.case import PlacementCase
from calibration.commands.main import main
from calibration.reference.chakra_trace import build_traces
from calibration.reference.ns3_folder import physical_topology, require_safe
from des import Placement, Plan, build_workload, read_topology

SMALL = ["--model", "llama2_7b", "--num-layers", "6", "--microbatches", "2", "--backend", "ns3"]


def export(*flags):
    return main(["export", *SMALL, *flags])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("ns3") / "folder"
    assert export("--out", str(path)) == 0
    return path


def test_domains_are_hosts_behind_gateways(folder):
    header, switches, *links = (folder / "physical_topology.txt").read_text().splitlines()

    assert header == "6 3 6"
    assert switches == "3 4 5"
    assert links[:3] == [f"{host} {host + 3} 100000000000bps 10000ns 0" for host in range(3)]
    assert links[3] == "3 4 5000000000bps 30000000ns 0"
    assert len(links) == 6


def test_every_speed_has_an_entry_of_each_threshold(folder):
    settings = dict(line.split(" ", 1) for line in (folder / "config.txt").read_text().splitlines())

    speeds = {"2000000000", "3000000000", "5000000000", "100000000000"}
    for name in ("KMIN_MAP", "KMAX_MAP", "PMAX_MAP"):
        count, *entries = settings[name].split()
        assert int(count) == len(speeds)
        assert set(entries[::2]) == speeds
    low, high = (settings[name].split()[2] for name in ("KMIN_MAP", "KMAX_MAP"))
    assert (low, high) == ("8000", "32000")  # 20 and 80 % of 2 Gbit/s times 160 ms
    assert settings["TOPOLOGY_FILE"] == "physical_topology.txt"


def test_the_logical_topology_has_one_dimension_and_groups_are_empty(folder):
    assert json.loads((folder / "logical_topology.json").read_text()) == {"logical-dims": ["3"]}
    assert "--comm-group-configuration=empty" in (folder / "README.md").read_text()
    assert not (folder / "network.yml").exists()
    assert (folder / "trace.2.et").exists()


def test_gpus_are_hosts_of_a_second_dimension(tmp_path):
    flags = ["--granularity", "gpu", "--parallelism", "2x1x1", "--out", str(tmp_path / "gpus")]
    assert export(*flags) == 0

    folder = tmp_path / "gpus"
    assert json.loads((folder / "logical_topology.json").read_text()) == {
        "logical-dims": ["2", "3"]
    }
    assert (folder / "physical_topology.txt").read_text().startswith("9 3 9\n6 7 8\n")


def test_messages_that_would_overflow_are_refused_before_the_start(tmp_path, capsys):
    assert export("--microbatch-size", "64", "--out", str(tmp_path / "none")) == 2

    assert "messages must be below 2 GiB, got" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def case_on(topology):
    job = build_workload("llama2_7b", num_layers=6, num_microbatches=2)
    plan = Plan(placement=Placement.even(3, 6))
    return PlacementCase(topology=topology, workload=job, plan=plan)


def test_unequal_directions_are_refused():
    world = read_topology("east_central_west")
    first, *others = world.links
    uneven = replace(world, links=(replace(first, latency_s=0.5), *others))

    with pytest.raises(ValueError, match="both directions must have equal figures"):
        physical_topology(case_on(uneven))


def test_random_losses_are_refused():
    world = read_topology("east_central_west")
    packets = replace(world.transport.packets, loss_fraction=0.001)
    case = case_on(replace(world, transport=replace(world.transport, packets=packets)))

    with pytest.raises(ValueError, match=r"loss_fraction must be 0"):
        require_safe(case, build_traces(case))

"""Servers and racks of nodes in topology files: read, written and refused."""

import re

import pytest
from written_worlds import edited_yaml, read

from calibration.fit.fitted_for import FittedFor
from des import build_workload
from des.devices.files.link_matrix import matrix_text
from des.devices.presets import simulated
from des.world.files.topology_writer import to_yaml
from des.world.files.topology_yaml import from_yaml


def world_of(entry: str, num_gpus: int = 16) -> str:
    """The shipped world whose first domain has the nodes of an entry."""
    return edited_yaml("num_gpus: 8", f"num_gpus: {num_gpus}\n      nodes: {entry}")


def first_domain(folder, entry: str, num_gpus: int = 16):
    """First domain of that world."""
    return read(folder, world_of(entry, num_gpus), ".yaml").domains[0]


def test_a_kind_of_server_has_gpus_cards_and_numa_nodes(tmp_path):
    domain = first_domain(tmp_path, "{server: dgx-h100, nic_latency: 5us, rack: r7}")

    assert domain.num_nodes == 2
    assert domain.nodes.server == simulated("dgx-h100")
    assert (domain.nodes.gpus_per_node, domain.nodes.nics_per_node) == (8, 8)
    assert domain.nodes.nic_bandwidth_bytes_per_s == 50e9
    assert domain.nodes.racks == ("r7", "r7")
    assert len(domain.nodes.server.numa_nodes) == 2


def test_a_file_beside_the_topology_is_a_server(tmp_path):
    """Of what nvidia-smi prints; it does not tell the bandwidth of cards."""
    (tmp_path / "topo.txt").write_text(matrix_text(simulated("dgx-1-v100")))
    entry = "{server: topo.txt, nic_bandwidth: 100Gbps, nic_latency: 5us, rack: [a, b]}"
    nodes = first_domain(tmp_path, entry).nodes

    assert nodes.server.gpu_tokens == simulated("dgx-1-v100").gpu_tokens
    assert (nodes.nics_per_node, nodes.racks) == (4, ("a", "b"))


def test_figures_given_count_before_those_of_the_server(tmp_path):
    entry = "{server: dgx-h100, nics_per_node: 2, nic_bandwidth: 200Gbps, nic_latency: 5us}"
    nodes = first_domain(tmp_path, entry).nodes

    assert (nodes.nics_per_node, nodes.nic_bandwidth_bytes_per_s) == (2, 25e9)


def test_kinds_and_racks_are_written_and_read_back(tmp_path):
    entry = "{server: dgx-h100, nic_latency: 5us, rack: [a, b]}"
    priced = entry.replace("}", ", rack_uplink: 400Gbps, rack_latency: 50us}")
    for each in (entry, priced):
        world = read(tmp_path, world_of(each), ".yaml")
        assert from_yaml(to_yaml(world)) == world
    assert world.domains[0].nodes.rack_uplink_bytes_per_s == 50e9
    (tmp_path / "topo.txt").write_text(matrix_text(simulated("dgx-h100")))
    of_file = entry.replace("dgx-h100,", "topo.txt, nic_bandwidth: 1Gbps,")
    with pytest.raises(ValueError, match=r"nodes: server must be left out .*/topo\.txt"):
        to_yaml(read(tmp_path, world_of(of_file), ".yaml"))


def test_servers_leave_the_times_of_a_network_and_its_digest(tmp_path):
    """Inner figures stay those of the domain, so factors fitted without servers fit with them.

    Racks with an uplink change times, so such factors do not fit.
    """
    plain = "{gpus_per_node: 8, nics_per_node: 8, nic_bandwidth: 400Gbps, nic_latency: 5us}"
    workload = build_workload("llama2_7b", num_microbatches=4)
    marks = [
        FittedFor.of(workload, read(tmp_path, world_of(entry), ".yaml"), network="w")
        for entry in (
            plain,
            plain.replace("}", ", server: dgx-h100, rack: a}"),
            plain.replace("}", ", rack: [a, b], rack_uplink: 400Gbps}"),
            plain.replace("}", ", rack: a, rack_uplink: 400Gbps}"),
        )
    ]

    assert marks[0] == marks[1]
    assert len({mark.network_digest for mark in marks}) == 3


BAD = {
    "unknown kind": (
        "{server: dgx-z100, nic_latency: 5us}",
        "domain East: nodes.server: must be one of ",
    ),
    "no figure": (
        "{server: nvswitch, nic_bandwidth: 1Gbps, nic_latency: 5us}",
        "domain East: nodes.nics_per_node: must be given, as server nvswitch does not tell it",
    ),
    "no server": (
        "{nics_per_node: 1, nic_bandwidth: 1Gbps, nic_latency: 5us}",
        "domain East: nodes.gpus_per_node: must be given",
    ),
    "other number of GPUs": (
        "{server: dgx-h100, gpus_per_node: 4, nic_latency: 5us}",
        "domain East: nodes: gpus_per_node must be the 8 GPUs of server dgx-h100, got 4",
    ),
    "racks": (
        "{server: dgx-h100, nic_latency: 5us, rack: [a]}",
        "domain East: racks must be 2, one a node, got 1",
    ),
    "uplink without racks": (
        "{server: dgx-h100, nic_latency: 5us, rack_uplink: 1Gbps}",
        "domain East: nodes: racks must be given with rack_uplink_bytes_per_s",
    ),
    "latency without uplink": (
        "{server: dgx-h100, nic_latency: 5us, rack: a, rack_latency: 1us}",
        "domain East: nodes: rack_uplink_bytes_per_s must be given with rack_latency_s",
    ),
    "no name": (
        "{server: dgx-h100, nic_latency: 5us, rack: ' '}",
        "domain East: nodes: racks must be names, got (' ', ' ')",
    ),
}


@pytest.mark.parametrize(("entry", "message"), BAD.values(), ids=BAD)
def test_bad_servers_are_refused_with_file_field_and_value(tmp_path, entry, message):
    with pytest.raises(ValueError, match=re.escape(f"world.yaml: {message}")):
        first_domain(tmp_path, entry)


def test_nodes_that_do_not_add_up_are_refused(tmp_path):
    message = "domain East: num_gpus must be a whole multiple of nodes.gpus_per_node, 8; got 12"
    with pytest.raises(ValueError, match=re.escape(f"world.yaml: {message}")):
        first_domain(tmp_path, "{server: dgx-h100, nic_latency: 5us}", 12)


def test_a_damaged_file_is_refused_with_its_name_and_reason(tmp_path):
    (tmp_path / "topo.txt").write_text(
        matrix_text(simulated("dgx-h100")).replace("NV18\tNV18", "NV18NV18", 1)
    )
    entry = "{server: topo.txt, nic_bandwidth: 1Gbps, nic_latency: 5us}"
    with pytest.raises(ValueError, match=r"domain East: .*topo\.txt: .*NV18NV18"):
        first_domain(tmp_path, entry)

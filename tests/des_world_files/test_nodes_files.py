"""Nodes of domains in both forms of topology files: read, written and refused."""

import re

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from noded import with_nodes
from strategies import topologies
from written_worlds import JSON, YAML, edited_yaml, read

from des import Nodes, read_topology
from des.world.files.topology_writer import to_yaml
from des.world.files.topology_yaml import from_yaml
from des.worlds import EAST_CENTRAL_WEST

ENTRY = "{gpus_per_node: 4, nics_per_node: 2, nic_bandwidth: 200Gbps, nic_latency: 5us}"
IN_JSON = {"gpus_per_node": 4, "nics_per_node": 2, "nic_bandwidth": "200Gbps", "nic_latency": "5us"}
FOURS = Nodes(gpus_per_node=4, nics_per_node=2, nic_bandwidth_bytes_per_s=25e9, nic_latency_s=5e-6)


def yaml_with(entry: str) -> str:
    """The shipped world whose first domain has the nodes of an entry."""
    return edited_yaml("num_gpus: 8", f"num_gpus: 8\n      nodes: {entry}")


def test_both_forms_give_the_same_nodes(tmp_path):
    from_json = read(tmp_path, JSON | {"nodes": [IN_JSON, None, None]}, ".json")
    assert [domain.nodes for domain in from_json.domains] == [FOURS, None, None]
    assert read(tmp_path, yaml_with(ENTRY), ".yaml") == from_json

    for_all = read(tmp_path, JSON | {"nodes": IN_JSON}, ".json")
    assert [domain.nodes for domain in for_all.domains] == [FOURS] * 3


def test_the_key_for_wide_tensor_groups_is_read(tmp_path):
    (domain, *_) = read(
        tmp_path, yaml_with(ENTRY.replace("}", ", tensor_across_nodes: true}")), ".yaml"
    ).domains
    assert domain.nodes is not None
    assert domain.nodes.tensor_across_nodes


def test_without_the_key_a_domain_has_one_level(tmp_path):
    assert [domain.nodes for domain in read(tmp_path, YAML, ".yaml").domains] == [None] * 3
    assert "nodes" not in to_yaml(read_topology(EAST_CENTRAL_WEST))


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data(), topology=topologies())
def test_any_nodes_read_back_to_the_last_bit(data, topology):
    world = data.draw(with_nodes(topology))

    assert from_yaml(to_yaml(world)) == world


def test_written_nodes_are_as_people_write_them(tmp_path):
    text = to_yaml(read(tmp_path, yaml_with(ENTRY), ".yaml"))
    assert f"nodes: {ENTRY}" in text


IN_YAML = "topology.domains[0].nodes"
BAD = {
    "no cards": (
        ("nics_per_node: 2", "nics_per_node: 0"),
        "domain East: nodes: nics_per_node must be a whole number from 1",
    ),
    "no whole nodes": (
        ("gpus_per_node: 4", "gpus_per_node: 3"),
        "domain East: num_gpus must be a whole multiple of nodes.gpus_per_node, 3; got 8",
    ),
    "no unit": (("200Gbps", "200"), f"{IN_YAML}.nic_bandwidth: must be a bandwidth such as"),
    "negative latency": (("5us", "-5us"), f"{IN_YAML}.nic_latency: must be at least 0; got '-5us'"),
    "missing key": ((", nic_latency: 5us", ""), f"{IN_YAML}.nic_latency: must be given"),
    "unknown key": (
        ("nics_per_node", "nics_a_node"),
        f"{IN_YAML}.nics_a_node: unknown key; did you mean 'nics_per_node'?",
    ),
    "no flag": (
        ("}", ", tensor_across_nodes: 2}"),
        f"{IN_YAML}.tensor_across_nodes: Input should be a valid boolean",
    ),
    "no mapping": ((ENTRY, "8"), f"{IN_YAML}: must be a mapping, got 8"),
}


@pytest.mark.parametrize(("edit", "message"), BAD.values(), ids=BAD)
def test_bad_nodes_are_refused_with_file_field_and_value(tmp_path, edit, message):
    with pytest.raises(ValueError, match=re.escape(f"world.yaml: {message}")):
        read(tmp_path, yaml_with(ENTRY.replace(*edit)), ".yaml")


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([IN_JSON], "nodes: must hold 3 entries, got 1"),
        (8, "nodes: Input should be a valid"),
        ({**IN_JSON, "cards": 1}, "domain East: nodes.cards: unknown key; allowed are gpus_per_n"),
        ([None, 8, None], "nodes[1]: Input should be a valid dictionary, got 8"),
        ({**IN_JSON, "gpus_per_node": 5}, "domain East: num_gpus must be a whole multiple of"),
    ],
)
def test_bad_nodes_in_json_are_refused(tmp_path, nodes, message):
    with pytest.raises(ValueError, match=re.escape(f"world.json: {message}")):
        read(tmp_path, JSON | {"nodes": nodes}, ".json")

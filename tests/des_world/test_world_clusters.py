"""Servers of all domains as one cluster."""

from dataclasses import replace

from des import Nodes, read_topology
from des.devices.presets import simulated
from des.world.clusters import cluster_of_domains
from des.worlds import EAST_CENTRAL_WEST


def world_in_racks():
    """Four servers in two racks, two that are in no rack, and a domain without nodes."""
    one, two, three = read_topology(EAST_CENTRAL_WEST).domains
    nodes = Nodes(
        gpus_per_node=8,
        nics_per_node=8,
        nic_bandwidth_bytes_per_s=25e9,
        nic_latency_s=5e-6,
        server=simulated("dgx-a100"),
        racks=("a", "a", "b", "b"),
    )
    domains = (
        replace(one, num_gpus=32, nodes=nodes),
        replace(two, num_gpus=16, nodes=replace(nodes, racks=())),
        three,
    )
    return replace(read_topology(EAST_CENTRAL_WEST), domains=domains)


def test_every_server_is_a_node_below_its_rack_and_domain():
    cluster = cluster_of_domains(world_in_racks())

    assert [node.name for node in cluster.nodes] == [
        *(f"East-{number}" for number in range(4)),
        *("Central-0", "Central-1", "West-0"),
    ]
    assert [node.switch for node in cluster.nodes] == [
        *("East/a", "East/a", "East/b", "East/b"),
        *("Central", "Central", "West"),
    ]
    assert sum(node.num_gpus for node in cluster.nodes) == 32 + 16 + 8
    assert cluster.nodes[0].server == simulated("dgx-a100")
    assert cluster.nodes[-1].server is None


def test_servers_of_one_rack_are_closer_than_those_of_one_domain():
    cluster = cluster_of_domains(world_in_racks())

    assert cluster.nearest_common("East-0", "East-1") == ("rack", "East/a")
    assert cluster.nearest_common("East-0", "East-2") == ("domain", "East")
    assert cluster.nearest_common("Central-0", "Central-1") == ("domain", "Central")
    assert cluster.nearest_common("East-0", "West-0") is None

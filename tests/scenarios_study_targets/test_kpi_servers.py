"""Servers that response times are measured on: those of a file before drawn ones."""

from dataclasses import replace

import numpy as np

from des import Nodes, read_topology
from des.devices.figures_file import shipped_link_figures
from des.devices.gpus import GpuTopology
from des.devices.presets import simulated
from des.devices.servers import draw_server
from des.worlds import EAST_CENTRAL_WEST
from scenarios.study.targets.local_level import servers_of


def test_servers_of_a_file_take_the_place_of_drawn_ones():
    """One node of a known server, two of it, and a domain as large as drawn servers are."""
    cube = simulated("dgx-1-v100")
    nodes = Nodes(
        gpus_per_node=8,
        nics_per_node=4,
        nic_bandwidth_bytes_per_s=12.5e9,
        nic_latency_s=5e-6,
        server=cube,
    )
    world = read_topology(EAST_CENTRAL_WEST)
    one, two, plain = world.domains
    domains = (replace(one, nodes=nodes), replace(two, nodes=nodes, num_gpus=16), plain)

    servers = servers_of(replace(world, domains=domains), np.random.default_rng(5))

    rng = np.random.default_rng(5)
    third = [draw_server(rng) for _ in range(3)][2]
    assert servers == (GpuTopology.of_server(cube, figures=shipped_link_figures()),) * 2 + (third,)


def test_domains_of_another_size_than_drawn_servers_have_gpus_that_are_alike():
    world = read_topology(EAST_CENTRAL_WEST)
    few, many, plain = world.domains
    domains = (replace(few, num_gpus=4), replace(many, num_gpus=64), plain)

    four, none, drawn = servers_of(replace(world, domains=domains), np.random.default_rng(0))

    assert (four.num_gpus, none, drawn.num_gpus) == (4, None, 8)
    assert len(set(four.bandwidth_bytes_per_s[0])) == 1

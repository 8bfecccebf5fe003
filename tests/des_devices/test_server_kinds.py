"""Kinds of servers: equal to recorded outputs where there is one, whole in any case."""

import pytest
from topo_outputs import READABLE, server_in

from des.devices.gpus import GpuTopology
from des.devices.presets import KIND_NAMES, KINDS, simulated
from des.devices.spans import numbers_in


def recorded(number):
    """Server of a recorded output."""
    path = next(path for path in READABLE if path.name.startswith(number))
    return server_in(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_every_kind_is_whole_and_has_a_source(kind):
    server = simulated(kind)

    assert server.name == kind
    assert KINDS[kind].about
    assert KINDS[kind].source
    assert GpuTopology.of_server(server).num_gpus == server.num_gpus
    cpus = [cpu for node in server.numa_nodes for cpu in numbers_in(node.cpus)]
    assert len(set(cpus)) == len(cpus)
    for gpu in server.gpus:
        own = [node for node in server.numa_nodes if node.number in gpu.numa_nodes]
        assert gpu.cpus == (own[0].cpus if own else ())


@pytest.mark.parametrize(("kind", "number"), [("hgx-h100", "01"), ("rtx-4090-8", "06")])
def test_kinds_have_the_matrix_and_affinities_of_recorded_servers(kind, number):
    made, read = simulated(kind), recorded(number)

    assert made.tokens == read.tokens
    assert [gpu.cpus for gpu in made.gpus] == [gpu.cpus for gpu in read.gpus]
    assert [gpu.numa_nodes for gpu in made.gpus] == [gpu.numa_nodes for gpu in read.gpus]


def test_the_dgx_1_with_p100_is_the_recorded_one():
    """Its cards are printed in the order 0, 2, 1, 3, and SYS as SOC."""
    made, read = simulated("dgx-1-p100"), recorded("14")
    order = [*range(8), 8, 10, 9, 11]

    assert [[row[place].replace("SOC", "SYS") for place in order] for row in read.tokens] == [
        list(made.tokens[place]) for place in order
    ]


def test_the_dgx_a100_has_the_gpus_and_nodes_of_the_recorded_one():
    """The recorded one also has four ports for storage, numbered between the others."""
    made, read = simulated("dgx-a100"), recorded("03")
    order = [*range(8), 8, 9, 10, 11, 14, 15, 16, 17]

    assert [[read.tokens[one][other] for other in order] for one in order] == [
        list(row) for row in made.tokens
    ]
    assert [gpu.cpus for gpu in made.gpus] == [gpu.cpus for gpu in read.gpus]
    assert [gpu.numa_nodes for gpu in made.gpus] == [gpu.numa_nodes for gpu in read.gpus]


@pytest.mark.parametrize(
    ("kind", "links"), [("dgx-1-p100", 4), ("dgx-1-v100", 6), ("a100-pairs-4", 12)]
)
def test_every_gpu_has_the_nvlinks_of_its_product(kind, links):
    assert {sum(row) for row in simulated(kind).nvlinks} == {links}


def test_unknown_kinds_are_refused_with_a_hint():
    with pytest.raises(ValueError, match="unknown kind 'dgx-a1oo'; did you mean 'dgx-a100'"):
        simulated("dgx-a1oo")

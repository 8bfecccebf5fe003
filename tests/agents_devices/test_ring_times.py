"""Times of all sets of GPUs: equal to those of each set by itself."""

from dataclasses import replace
from itertools import combinations

import pytest
from device_servers import cube_mesh, servers, switched
from hypothesis import given
from hypothesis import strategies as st

from agents.devices.free_gpus import FreeGpus
from agents.devices.gpu_placement import optimal_placement
from agents.devices.ring_times import places_all_reduce_s, set_all_reduces_s
from agents.devices.server_choice import ServerPool
from agents.devices.training_figures import TrainingAssumptions
from agents.devices.training_placement import optimise_placement
from des.costs.device_collectives import all_reduce_time
from des.costs.device_groups import DeviceGroup
from des.devices.cluster import Cluster, ClusterNode
from des.devices.figures_file import shipped_link_figures
from des.devices.server import Server


def of_models(server: Server, *models: str) -> Server:
    """Same server with GPUs of some models in turn."""
    gpus = [
        replace(gpu, model=models[place % len(models)]) for place, gpu in enumerate(server.gpus)
    ]
    return replace(server, gpus=tuple(gpus))


def group_s(server: Server, places: tuple[int, ...], payload_bytes: float) -> float:
    """Time of one group by itself, one ring or several."""
    group = DeviceGroup.of_server(server, shipped_link_figures(), places=places)
    return all_reduce_time(group, payload_bytes).time_s if len(places) > 1 else 0.0


def check_every_set(server: Server, size: int) -> None:
    """Compare the times of all sets of a size with those of each set."""
    times_s = set_all_reduces_s(server, range(server.num_gpus), size, 1e8)
    for places in combinations(range(server.num_gpus), size):
        chosen = sum(1 << server.num_gpus - 1 - place for place in places)
        assert times_s[chosen] == pytest.approx(group_s(server, places, 1e8), rel=1e-12)


@pytest.mark.parametrize("size", range(1, 6))
def test_sets_of_a_cube_mesh_have_one_ring_or_several(size):
    check_every_set(of_models(cube_mesh(), "v100"), size)


@given(server=servers(most_gpus=6), data=st.data())
def test_sets_take_as_long_as_each_by_itself(server, data):
    models = data.draw(st.sampled_from([("v100",), ("a100",), ("a100", "v100")]))
    check_every_set(of_models(server, *models), data.draw(st.integers(1, server.num_gpus)))


def test_the_quickest_half_of_a_dgx_1_is_found_by_the_figures_of_its_gpus():
    server = of_models(cube_mesh(), "v100")
    found = optimal_placement(server, 4, by="time")

    assert found.gpus == (0, 1, 2, 3)
    assert found.all_reduce_s == group_s(server, (0, 1, 2, 3), 100e6)
    assert found.all_reduce_s == places_all_reduce_s(server, (0, 1, 2, 3), 100e6)


def test_a_job_takes_the_figures_of_its_gpus_too():
    server = of_models(switched(), "a100")
    pool = ServerPool(
        cluster=Cluster(nodes=(ClusterNode(name="a"), ClusterNode(name="b"))),
        servers=tuple(FreeGpus(name=name, server=server, numbers=tuple(range(8))) for name in "ab"),
    )
    assumed = TrainingAssumptions(
        model="qwen2_5_0_5b",
        gpu="a100_80",
        cards_per_server=4,
        card_bandwidth_bytes_per_s=25e9,
    )

    one = optimise_placement(pool, 8, 8, assumed=assumed)
    two = optimise_placement(pool, 16, 8, assumed=assumed)

    assert one.all_reduce_s == group_s(server, tuple(range(8)), 100e6)
    assert two.all_reduce_s > one.all_reduce_s

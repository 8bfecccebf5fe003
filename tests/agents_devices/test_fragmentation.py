"""Fragmentation of free GPUs: closed forms and bounds."""

import pytest
from device_servers import cube_mesh, server_of_pairs, servers, switched
from hypothesis import given
from hypothesis import strategies as st

from agents.devices.fragmentation import fragmentation
from agents.devices.free_gpus import FreeGpus
from des.devices.server import Server


def free_of(server: Server, *numbers: int, name: str = "s") -> FreeGpus:
    """Some free GPUs of a server."""
    return FreeGpus(name=name, server=server, numbers=numbers)


@pytest.mark.parametrize("num_free", range(9))
def test_at_a_switch_nothing_is_lost_on_one_server(num_free):
    found = fragmentation([free_of(switched(), *range(num_free))], {2: 1.0, 4: 1.0})

    assert found.fraction == 0.0
    assert found.unplaced_fraction == (num_free < 2) / 2 + (num_free < 4) / 2
    small = [num_free > 0 and num_free < size for size in (2, 4)]
    assert found.unusable_fraction == sum(small) / 2


@pytest.mark.parametrize("num_servers", [2, 3, 5])
def test_jobs_that_only_gathered_gpus_would_serve_are_lost(num_servers):
    """One GPU free on each of n servers: sizes 2 to n are lost, greater ones lack GPUs."""
    servers = [free_of(switched(), 0, name=f"s{index}") for index in range(num_servers)]
    mix = dict.fromkeys(range(1, 9), 1.0)

    found = fragmentation(servers, mix)

    assert found.fraction == pytest.approx((num_servers - 1) / 8)
    assert found.unplaced_fraction == pytest.approx(7 / 8)
    assert found.unusable_fraction == pytest.approx(7 / 8)


def test_lost_nvlinks_count_in_proportion():
    """0-1-4-5 of a cube mesh has 1+2+2+1 of 9 NVLinks at best, and a pair of 2."""
    found = fragmentation([free_of(cube_mesh(), 0, 1, 4, 5)], {2: 1.0, 4: 3.0})

    assert found.fraction == pytest.approx(0.75 * (1 - 6 / 9))
    assert found.is_exact


def test_weights_need_not_add_up_to_one():
    free = [free_of(cube_mesh(), 0, 1, 4, 5)]

    one, ten = fragmentation(free, {2: 1.0, 4: 3.0}), fragmentation(free, {2: 10.0, 4: 30.0})
    assert one.fraction == pytest.approx(ten.fraction)


def test_a_full_server_is_not_in_pieces():
    found = fragmentation([free_of(cube_mesh())])

    assert (found.fraction, found.unusable_fraction, found.unplaced_fraction) == (0.0, 0.0, 1.0)


def test_beyond_16_gpus_the_measure_says_that_it_is_greedy():
    server = server_of_pairs(20, lambda one, other: "NV4" if one // 4 == other // 4 else "SYS")
    found = fragmentation([free_of(server, 0, 1, 4, 5)], {4: 1.0})

    assert not found.is_exact
    assert found.fraction == pytest.approx(1 - 8 / 24)


@given(chosen=st.lists(servers(), min_size=1, max_size=3), draw=st.data())
def test_the_loss_is_a_fraction_and_nothing_where_all_is_free(chosen, draw):
    weights = st.dictionaries(st.integers(1, 9), st.floats(0.1, 10.0), min_size=1, max_size=4)
    mix = draw.draw(weights)
    some = [
        free_of(
            server,
            *sorted(draw.draw(st.sets(st.sampled_from(range(server.num_gpus))))),
            name=f"s{index}",
        )
        for index, server in enumerate(chosen)
    ]
    found = fragmentation(some, mix)

    for value in (found.fraction, found.unusable_fraction, found.unplaced_fraction):
        assert 0.0 <= value <= 1.0
    everything = [free_of(server, *range(server.num_gpus)) for server in chosen]
    assert fragmentation(everything, mix).fraction == 0.0


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        ({}, "mix: must hold at least one size"),
        ({0: 1.0}, "mix: size must be a whole number from 1"),
        ({2: 0.0}, "weight of jobs of 2 GPUs must be positive and finite, got 0.0"),
        ({2: float("nan")}, "weight of jobs of 2 GPUs must be positive and finite, got nan"),
    ],
)
def test_wrong_mixes_are_refused(mix, message):
    with pytest.raises(ValueError, match=message):
        fragmentation([free_of(cube_mesh(), 0)], mix)


def test_free_gpus_must_be_of_the_server_and_servers_at_least_one():
    with pytest.raises(ValueError, match="free GPUs of s must be numbers of its GPUs"):
        free_of(cube_mesh(), 8)
    with pytest.raises(ValueError, match="servers must be at least one, got none"):
        fragmentation([])

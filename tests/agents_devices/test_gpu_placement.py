"""Placement on one server: golden sets, cases by hand, and properties against brute force."""

import json
from itertools import combinations
from pathlib import Path

import pytest
from device_servers import (
    cube_mesh,
    pcie,
    renamed,
    server_of_pairs,
    server_of_tokens,
    servers,
    switched,
)
from hypothesis import given
from hypothesis import strategies as st

from agents.devices.goodness import places_of, score_of_places
from agents.devices.gpu_placement import best_sets, optimal_placement
from agents.devices.greedy_sets import greedy_places
from agents.devices.ring_times import places_all_reduce_s
from des.devices.gpus import GpuTopology
from des.devices.server import Server

GOLDEN = Path(__file__).parent.parent / "golden" / "topo"
WITH_SETS = [
    path
    for path in sorted(GOLDEN.glob("*.json"))
    if "best_sets_by_nvlink_sum" in path.read_text("utf-8")
]


def golden_server(content: dict[str, object]) -> Server:
    """Server of an expected parse: GPUs first, then cards."""
    matrix, names = content["matrix"], content["matrix_order"]
    assert isinstance(matrix, list)
    assert isinstance(names, list)
    order = sorted(range(len(names)), key=lambda row: not names[row].startswith("GPU"))
    num_cards = sum(not name.startswith("GPU") for name in names)
    tokens = [[matrix[one][other] for other in order] for one in order]
    return server_of_tokens(tokens, num_cards=num_cards)


@pytest.mark.parametrize("path", WITH_SETS, ids=lambda path: path.stem)
def test_best_sets_of_real_servers_are_those_found_by_brute_force(path):
    content = json.loads(path.read_text("utf-8"))
    server = golden_server(content)

    for size, expected in content["best_sets_by_nvlink_sum"].items():
        found = optimal_placement(server, int(size))
        assert list(map(list, best_sets(server, int(size)))) == expected["sets"]
        assert found.score.nvlinks == expected["nvlink_sum"]
        assert list(found.gpus) in expected["sets"]


def test_there_are_golden_servers():
    assert len(WITH_SETS) == 2


def test_four_gpus_of_a_cube_mesh_are_a_square_with_its_diagonals():
    """1+1+2+2+1+2 NVLinks in either half; the greedy choice from GPU 0 on leaves the half."""
    found = optimal_placement(cube_mesh(), 4)

    assert (found.gpus, found.score.nvlinks, found.num_ties) == ((0, 1, 2, 3), 9, 2)
    assert found.is_exact
    assert found.why == (
        "9 NVLinks inside, farthest pair NV, no set of the 8 free has more; "
        "2 sets are as good in every part, this one comes first"
    )


def test_taken_gpus_are_not_used():
    """Of 1, 2, 4, 6, 7 the pairs with 2 NVLinks are 1-2, 4-7 and 6-7."""
    free = (1, 2, 4, 6, 7)

    assert best_sets(cube_mesh(), 2, free) == ((1, 2), (4, 7), (6, 7))
    assert optimal_placement(cube_mesh(), 3, free).gpus == (4, 6, 7)


def test_without_nvlinks_the_closest_gpus_are_best():
    assert optimal_placement(pcie(), 2).gpus == (0, 1)
    assert optimal_placement(pcie(), 2, (0, 2, 4, 7)).gpus == (0, 2)
    assert optimal_placement(pcie(), 4, (0, 2, 3, 4, 5, 6, 7)).gpus == (4, 5, 6, 7)
    assert optimal_placement(pcie(), 4).score.distances == 2 * 2 + 4 * 5


def test_among_equal_distances_the_nearest_farthest_pair_counts():
    """2 + 2 + 6 and 3 + 3 + 4 are both 10."""
    near = {(0, 1): "PIX", (1, 2): "PIX", (0, 2): "SYS"}
    even = {(3, 4): "PXB", (4, 5): "PXB", (3, 5): "PHB"}
    server = server_of_pairs(6, lambda one, other: (near | even).get((one, other), "SYS"))

    assert optimal_placement(server, 3).gpus == (3, 4, 5)


def test_gpus_with_a_card_on_their_path_come_before_others():
    """Pairs of GPUs are alike; the card is at the switch of the second pair."""
    tokens = [
        ["X", "PIX", "SYS", "SYS", "SYS"],
        ["PIX", "X", "SYS", "SYS", "SYS"],
        ["SYS", "SYS", "X", "PIX", "PIX"],
        ["SYS", "SYS", "PIX", "X", "PXB"],
        ["SYS", "SYS", "PIX", "PXB", "X"],
    ]
    found = optimal_placement(server_of_tokens(tokens, num_cards=1), 2)

    assert (found.gpus, found.score.card_distances) == ((2, 3), 2 + 3)
    assert optimal_placement(server_of_tokens(tokens, num_cards=1), 1).gpus == (2,)


def test_a_single_gpu_is_taken_where_it_breaks_no_pair():
    """GPU 3 has lost its partner; any other would cost the rest a pair."""
    found = optimal_placement(pcie(), 1, (0, 1, 3, 4, 5))

    assert found.gpus == (3,)
    assert optimal_placement(pcie(4), 1, (0, 2, 3)).gpus == (0,)


@pytest.mark.parametrize("num_gpus", [2, 3, 4])
def test_by_time_the_best_ring_is_found(num_gpus):
    server = cube_mesh()
    found = optimal_placement(server, num_gpus, by="time")

    times_s = {
        chosen: places_all_reduce_s(server, chosen, 100e6)
        for chosen in combinations(range(8), num_gpus)
    }
    assert found.all_reduce_s == min(times_s.values()) == times_s[found.gpus]
    assert f"all-reduce in {1e3 * found.all_reduce_s:.3f} ms, no set is faster" in found.why


def test_time_of_a_set_is_that_of_its_ring():
    """A ring of 3 in the cube mesh has a hop of one NVLink: 20 GB/s, 3.4 us a step."""
    time_s = places_all_reduce_s(cube_mesh(), (0, 1, 2), 30e6)

    assert time_s == pytest.approx(4 * (3.4e-6 + 10e6 / 20e9))
    assert places_all_reduce_s(cube_mesh(), (5,), 30e6) == 0.0
    ring = GpuTopology.of_server(cube_mesh()).wires.ring_bandwidth_bytes_per_s
    assert ring[0b111] == 20e9


def test_more_than_16_gpus_are_placed_greedily_and_the_answer_says_so():
    server = server_of_pairs(20, lambda one, other: "NV4" if one // 4 == other // 4 else "SYS")
    found = optimal_placement(server, 4, range(1, 20))

    assert (found.gpus, found.is_exact, found.num_ties) == ((4, 5, 6, 7), False, None)
    assert "greedy" in found.why
    assert optimal_placement(server, 4, range(1, 17)).is_exact
    with pytest.raises(ValueError, match="by must be nvlinks among more than 16 free GPUs"):
        optimal_placement(server, 4, by="time")
    with pytest.raises(ValueError, match="at most 16 free GPUs, got 20"):
        best_sets(server, 4)


def test_sixteen_gpus_at_a_switch_have_all_sets_alike():
    found = optimal_placement(switched(16), 8)

    assert (found.gpus, found.num_ties) == (tuple(range(8)), 12870)


@given(server=servers(), draw=st.data())
def test_the_answer_is_the_best_of_all_sets(server, draw):
    free = sorted(draw.draw(st.sets(st.sampled_from(range(server.num_gpus)), min_size=1)))
    num_gpus = draw.draw(st.integers(1, len(free)))
    scores = {
        chosen: score_of_places(server, chosen, free) for chosen in combinations(free, num_gpus)
    }
    best = max(score.order for score in scores.values())
    equal = [chosen for chosen, score in scores.items() if score.order == best]

    found = optimal_placement(server, num_gpus, free)

    assert found.gpus == equal[0]  # which combinations give in the order of the server
    assert found.num_ties == len(equal)
    assert found.score == scores[equal[0]]
    most = max(score.nvlinks for score in scores.values())
    assert best_sets(server, num_gpus, free) == tuple(
        chosen for chosen, score in scores.items() if score.nvlinks == most
    )


@given(server=servers(), draw=st.data())
def test_numbering_changes_no_score_and_greedy_is_never_better(server, draw):
    order = draw.draw(st.permutations(range(server.num_gpus)))
    num_gpus = draw.draw(st.integers(1, server.num_gpus))
    other = renamed(server, order)

    found, again = optimal_placement(server, num_gpus), optimal_placement(other, num_gpus)

    assert found.score == again.score
    assert found.num_ties == again.num_ties
    assert found.num_ties > 1 or set(found.gpus) == set(again.gpus)
    everything = range(server.num_gpus)
    greedy = score_of_places(server, greedy_places(server, num_gpus, everything), everything)
    assert found.score.order >= greedy.order
    assert score_of_places(server, places_of(server, "gpus", found.gpus), everything) == found.score


@given(server=servers(), data=st.data())
def test_numbering_changes_no_time_and_no_number_of_nodes(server, data):
    order = data.draw(st.permutations(range(server.num_gpus)))
    num_gpus = data.draw(st.integers(1, server.num_gpus))
    other = renamed(server, order)

    for options in ({"by": "time"}, {"policy": "best-effort"}):
        found = optimal_placement(server, num_gpus, **options)
        again = optimal_placement(other, num_gpus, **options)
        assert found.score == again.score
        assert found.all_reduce_s == again.all_reduce_s
        assert found.num_nodes == again.num_nodes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_gpus": 9}, "num_gpus must be at most its 8 free GPUs, got 9"),
        ({"num_gpus": 3, "free": (1, 2)}, "num_gpus must be at most its 2 free GPUs, got 3"),
        ({"num_gpus": 0}, "num_gpus must be a whole number from 1"),
        ({"num_gpus": 1, "free": (8,)}, "free must be numbers of its GPUs, 0, 1, .*; got 8"),
        ({"num_gpus": 1, "free": (1, 1)}, "free must name each GPU once"),
        ({"num_gpus": 1, "by": "luck"}, "by must be one of nvlinks, time; got 'luck'"),
        ({"num_gpus": 1, "policy": "luck"}, "policy must be one of none, .*; got 'luck'"),
        ({"num_gpus": 1, "payload_bytes": 0.0}, "payload_bytes must be positive"),
    ],
)
def test_bad_questions_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        optimal_placement(cube_mesh(), **options)

"""Groups of GPUs: cases by hand, and properties against all divisions."""

from collections.abc import Iterator
from itertools import combinations

import pytest
from device_servers import cube_mesh, pcie, renamed, server_of_pairs, servers, switched
from hypothesis import given
from hypothesis import strategies as st

from agents.devices.goodness import score_of_places
from agents.devices.gpu_groups import optimal_groups
from des.devices.server import Server


def test_pairs_of_a_cube_mesh_have_two_nvlinks_each():
    found = optimal_groups(cube_mesh(), 2)

    assert found.groups == ((0, 3), (1, 2), (4, 7), (5, 6))
    assert (found.nvlinks, found.worst.nvlinks, found.left) == (8, 2, ())
    assert found.is_exact


def test_the_worst_pair_counts_before_the_sum():
    """A path 0-1-2-3 of 1, 9 and 1 NVLinks: the ends are not joined, so 9 would cost them all."""
    links = {(0, 1): "NV1", (1, 2): "NV9", (2, 3): "NV1"}
    server = server_of_pairs(4, lambda one, other: links.get((one, other), "SYS"))

    assert optimal_groups(server, 2).groups == ((0, 1), (2, 3))


def test_the_sum_counts_where_the_worst_is_equal():
    """GPU 4 is joined to none, so the pair of it is worst; the others may be 8 or 2 + 2."""
    links = {(0, 1): "NV8", (1, 2): "NV2", (0, 3): "NV2"}
    server = server_of_pairs(6, lambda one, other: links.get((one, other), "SYS"))

    found = optimal_groups(server, 2)

    assert (found.nvlinks, found.worst.nvlinks) == (8, 0)
    assert (0, 1) in found.groups


def test_what_fits_no_group_is_left_over():
    found = optimal_groups(pcie(), 2, (0, 1, 3, 4, 5))

    assert (found.groups, found.left) == (((0, 1), (4, 5)), (3,))


def test_threes_of_a_cube_mesh_leave_two():
    found = optimal_groups(cube_mesh(), 3)

    assert [score.nvlinks for score in found.scores] == [5, 5]
    assert len(found.left) == 2


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_sixteen_gpus_are_divided_exactly(size):
    found = optimal_groups(switched(16), size)

    assert found.is_exact
    assert found.groups[0] == tuple(range(size))
    assert found.nvlinks == 16 * (size - 1) // 2 * 12


def test_beyond_sixteen_the_division_is_greedy_and_says_so():
    server = server_of_pairs(24, lambda one, other: "NV4" if one // 4 == other // 4 else "SYS")
    found = optimal_groups(server, 4)

    assert not found.is_exact
    assert found.groups == tuple(tuple(range(first, first + 4)) for first in range(0, 24, 4))


def divisions(gpus: tuple[int, ...], size: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield all divisions of some GPUs into groups that leave as few as can be."""
    if len(gpus) < size:
        yield ()
        return
    if len(gpus) % size:
        for gpu in gpus:
            yield from divisions(tuple(each for each in gpus if each != gpu), size)
        return
    for others in combinations(gpus[1:], size - 1):
        group = (gpus[0], *others)
        for rest in divisions(tuple(gpu for gpu in gpus if gpu not in group), size):
            yield (group, *rest)


def goodness(server: Server, groups: tuple[tuple[int, ...], ...]) -> tuple[object, object]:
    """Worst group, then the sums of all parts."""
    scores = [score_of_places(server, group, group).inner_order for group in groups]
    return min(scores), tuple(map(sum, zip(*scores, strict=True)))


@given(server=servers(most_gpus=7), draw=st.data())
def test_no_division_is_better(server, draw):
    free = tuple(sorted(draw.draw(st.sets(st.sampled_from(range(server.num_gpus)), min_size=1))))
    size = draw.draw(st.integers(1, len(free)))

    found = optimal_groups(server, size, free)

    gpus = [gpu for group in found.groups for gpu in group]
    assert sorted([*gpus, *found.left]) == list(free)
    assert all(len(group) == size for group in found.groups)
    best = max(goodness(server, groups) for groups in divisions(free, size))
    assert goodness(server, found.groups) == best


@given(server=servers(), draw=st.data())
def test_numbering_changes_no_figure_of_groups(server, draw):
    order = draw.draw(st.permutations(range(server.num_gpus)))
    size = draw.draw(st.integers(1, server.num_gpus))

    found, again = optimal_groups(server, size), optimal_groups(renamed(server, order), size)

    assert goodness(server, found.groups) == goodness(server, again.groups)


def test_groups_larger_than_the_free_gpus_are_refused():
    with pytest.raises(ValueError, match="size of groups must be at most its 2 free GPUs, got 3"):
        optimal_groups(cube_mesh(), 3, (1, 2))

"""Receives by backend: gloo takes all first, NCCL few a sender, on a communicator a direction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.iteration.reference_operations import read_operations
from scenarios.rehearse.receive_places import MOST_AHEAD, connection_of, place_receives

FIRST = read_operations(
    ",".join([f"1RECV_F{n}" for n in range(8)] + [f"1WAIT_F{n},1F{n}" for n in range(8)]), "here"
)[0]


def placed(operations, **changes):
    """Operations of rank 1 of two under NCCL."""
    settings = {"backend": "nccl", "num_connections": 2} | changes
    return place_receives(operations, [0, 1], **settings)


def test_gloo_keeps_all_receives_first():
    assert placed(FIRST, backend="gloo", num_connections=1) == FIRST


def test_nccl_has_few_receives_ahead_in_the_order_of_the_sender():
    found = placed(FIRST)
    posts = [one for one in found if one.action == "RECV"]
    assert posts == [one for one in FIRST if one.action == "RECV"]
    ahead = 0
    for one in found:
        ahead += (one.action == "RECV") - (one.action == "WAIT")
        assert 0 <= ahead <= MOST_AHEAD


@given(st.permutations(range(8)))
def test_every_receive_is_posted_before_it_is_waited_for(order):
    """Waits in any order: a wait far ahead posts what comes before it."""
    waits = ",".join(f"1WAIT_F{n}" for n in order)
    posts = ",".join(f"1RECV_F{n}" for n in range(8))
    found = placed(read_operations(f"{posts},{waits}", "here")[0])

    assert sorted(found) == sorted(read_operations(f"{posts},{waits}", "here")[0])
    for one in found:
        if one.action == "WAIT":
            assert found.index(one._replace(action="RECV")) < found.index(one)


def test_a_communicator_for_both_directions_is_refused_under_nccl():
    with pytest.raises(ValueError, match="connections must be at least 2 under nccl"):
        placed(FIRST, num_connections=1)


@pytest.mark.parametrize("num_connections", [0, 3, -2])
def test_connections_are_one_or_even(num_connections):
    with pytest.raises(ValueError, match="connections must be 1 or even"):
        placed(FIRST, num_connections=num_connections)


def test_unknown_backends_are_refused():
    with pytest.raises(ValueError, match="backend must be one of gloo, nccl, got 'mpi'"):
        placed(FIRST, backend="mpi")


@given(st.integers(1, 4), st.integers(0, 9), st.integers(0, 3), st.integers(0, 3))
def test_directions_never_share_a_connection(half, microbatch, one, other):
    if one != other:
        there, back = (
            connection_of(*ends, microbatch, 2 * half) for ends in ((one, other), (other, one))
        )
        assert there != back

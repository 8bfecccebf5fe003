"""The compiled engine by hand, and what its programs and states may be used for."""

from dataclasses import replace

import pytest
from sending import moving, with_transport
from strategies import FREE_BANDWIDTH_BYTES_PER_S, free_world, plan, unit_workload, world

from des import Operation, StarvationError
from des.compiled.kernels.general import run_program
from des.compiled.kernels.program import BEYOND, DEADLOCK, STARVED
from des.compiled.links import Pieces
from des.compiled.pack import pack
from des.compiled.simulate import moves_end_s, simulate_compiled
from des.compiled.state import new_state
from des.program.lowering import lower
from des.program.moves import LayerMove
from des.program.worker_lists import worker_lists

FREE = (FREE_BANDWIDTH_BYTES_PER_S, 0.0)


def test_two_stages_by_hand():
    """F 0-1, 1 s on the wire and 1 s of flight, F 3-4, B 4-6, 2 s back, B 8-10."""
    topology = world("AB", {"AB": (1.0, 1.0), "BA": (1.0, 1.0)})
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=1, message_bytes=1.0)

    result = simulate_compiled(topology, workload, plan(0, 1))
    assert [span[3:] for span in result.spans] == [(0, 1), (8, 10), (3, 4), (4, 6)]
    assert [move[4:] for move in result.transfers] == [(1, 2, 3), (6, 7, 8)]
    assert result.makespan_s == 10


@pytest.mark.parametrize(
    ("sharing", "ends_s"), [("fair", [(1, 4, 4), (2, 5, 5)]), ("none", [(1, 3, 3), (2, 4, 4)])]
)
def test_shared_wires_by_hand(sharing, ends_s):
    """Two activations of 2 bytes, ready at 1 and 2 s, on a wire of 1 byte/s.

    Fair: the first has 1 byte when the second comes, and half the wire from then on: it leaves at
    4, the second at 5. Without queues each is alone on the wire: gone at 3 and 4.
    """
    topology = with_transport(world("AB", {"AB": (1.0, 0.0), "BA": FREE}), sharing=sharing)
    workload = unit_workload([(8, 8), (8, 8)], num_microbatches=2, message_bytes=2.0)

    result = simulate_compiled(topology, workload, plan(0, 1, schedule="gpipe"))
    forward = [move[4:] for move in result.transfers if move.kind == "F"]
    assert forward == ends_s
    assert result.links[0].busy_s == 4


@pytest.mark.parametrize(("sharing", "end_s"), [("fifo", 8.0), ("fair", 7.0), ("none", 5.0)])
def test_moves_of_layers_by_hand(sharing, end_s):
    """4 bytes from A to B, 2 more on to C; 1 byte/s and 1 s to B, 1 s to C.

    In turn the second leaves at 6 and is at C at 8. Side by side it leaves at 4 and is at C at 6;
    the first leaves at 6 and is at B at 7. Each by itself they
    leave at 4 and 2, and are there at 5 and 4.
    """
    links = {"AB": (1.0, 1.0), "BC": (FREE_BANDWIDTH_BYTES_PER_S, 1.0)}
    topology = with_transport(world("ABC", links), sharing=sharing)
    moves = [LayerMove(0, 0, 1, 4.0), LayerMove(1, 0, 2, 2.0)]

    assert moves_end_s(topology, moves) == end_s


def test_no_moves_take_no_time():
    assert moves_end_s(free_world(2), []) == 0.0


def test_a_link_that_is_down_for_ever_is_refused_as_by_the_readable_engine():
    topology = moving(world("AB", {"AB": (1.0, 0.0), "BA": (1.0, 0.0)}), (2.0, 0.0, 1.0))
    workload = unit_workload([(1, 1), (1, 1)], num_microbatches=1, message_bytes=4.0)

    arrays = pack(topology, lower(topology, workload, plan(0, 1)))
    assert run_program(arrays, new_state(arrays)) == BEYOND
    with pytest.raises(StarvationError, match="down for ever from 2 s on, with 3 bytes"):
        simulate_compiled(topology, workload, plan(0, 1))
    assert moves_end_s(topology, [LayerMove(0, 0, 1, 4.0)]) is None


def test_a_wire_that_starves_says_which():
    topology = moving(world("AB", {"AB": (1.0, 0.0), "BA": (1.0, 0.0)}), (2.0, 0.0, 1.0), link=0)
    workload = unit_workload([(1, 1), (1, 1)], num_microbatches=1, message_bytes=4.0)
    program = pack(topology, lower(topology, workload, plan(0, 1)))
    pieces, links = Pieces(topology, 1), program.links.copy()
    assert all(pieces.extend(link, 0.0, 10.0) for link in range(len(links)))
    program = program._replace(pieces=pieces.write(links), links=links)

    state = new_state(program)
    assert run_program(program, state) == STARVED
    assert state.outcome["link"][0] == 0


@pytest.mark.parametrize("step", [-1, True, 1.0])
def test_a_step_is_refused_as_by_the_readable_engine(step):
    workload = unit_workload([(1, 1)], num_microbatches=1)

    with pytest.raises(ValueError, match="step must be a whole number of at least 0, got"):
        simulate_compiled(free_world(1), workload, plan(0), step=step)


def test_workers_that_wait_for_each_other_are_told_apart():
    """Stage 0 wants a gradient before it has done the forward pass that the gradient follows."""
    workload = unit_workload([(1, 1), (1, 1)], num_microbatches=1)
    orders = (
        (Operation("B", 0, 0), Operation("F", 0, 0)),
        (Operation("F", 0, 1), Operation("B", 0, 1)),
    )
    lists, _ = worker_lists(orders, (2,), (0, 1))
    lowered = replace(lower(free_world(2), workload, plan(0, 1)), operations=lists)
    program = pack(free_world(2), lowered)

    assert run_program(program, new_state(program)) == DEADLOCK

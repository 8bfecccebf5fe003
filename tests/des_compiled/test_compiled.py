"""The compiled engine by hand, and what its programs and states may be used for."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sending import moving, transports, with_transport
from sharing import gpus
from strategies import (
    FREE_BANDWIDTH_BYTES_PER_S,
    free_world,
    plan,
    topologies,
    unit_workload,
    workloads,
    world,
)
from ties import any_plans, replays

from bench.kernels.seeded import run_seeds
from des import (
    Dynamics,
    Movement,
    Operation,
    Parallelism,
    Placement,
    Plan,
    StarvationError,
    Topology,
    Transport,
    Workload,
    simulate,
)
from des.compiled.kernels.fair_sharing import equal_share
from des.compiled.kernels.general import run_program
from des.compiled.kernels.program import BEYOND, DEADLOCK, OK, STARVED, State
from des.compiled.links import Pieces
from des.compiled.operations import operations_of
from des.compiled.program import lower
from des.compiled.simulate import moves_end_s, simulate_compiled
from des.compiled.state import make_state, new_state
from des.costs.feasibility import orders_of_plan
from des.engine.fair_wire import equal_part as equal_part_of_any
from des.engine.migration import LayerMove

FREE = (FREE_BANDWIDTH_BYTES_PER_S, 0.0)


def starts_s(topology: Topology, chosen: Plan, passes_s: list, stage: int) -> list[float]:
    """Starts of the forward passes of a stage, of 3 microbatches."""
    result = simulate_compiled(topology, unit_workload(passes_s, num_microbatches=3), chosen)
    return [span.start_s for span in result.spans if (span.stage, span.kind) == (stage, "F")]


def test_two_stages_by_hand():
    """F 0-1, 1 s on the wire and 1 s of flight, F 3-4, B 4-6, 2 s back, B 8-10."""
    topology = world("AB", {"AB": (1.0, 1.0), "BA": (1.0, 1.0)})
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=1, message_bytes=1.0)

    result = simulate_compiled(topology, workload, plan(0, 1))
    assert [span[3:] for span in result.spans] == [(0, 1), (8, 10), (3, 4), (4, 6)]
    assert [move[4:] for move in result.transfers] == [(1, 2, 3), (6, 7, 8)]
    assert result.makespan_s == 10


def test_a_message_arrives_before_a_worker_asks_by_hand():
    """Pattern A, B, A, gpipe; A forwards 2 s, B 1 s, and from B to A 1 s.

    At 4 stage 0 has done F1, and F0 of stage 2 is there: A does that first.
    """
    topology = world("AB", {"AB": FREE, "BA": (FREE_BANDWIDTH_BYTES_PER_S, 1.0)})
    chosen, passes_s = plan(0, 1, 0, schedule="gpipe"), [(2, 1), (1, 1), (2, 1)]

    assert starts_s(topology, chosen, passes_s, 0) == [0, 2, 6]
    assert starts_s(topology, chosen, passes_s, 2) == [4, 8, 10]


def test_of_two_workers_the_first_asks_first_by_hand():
    """Pattern A, B, A, gpipe, all forwards 1 s, free links.

    At 2 stage 0 has done F1 and asks for F2; then B has done F0, which it sends to stage 2.
    """
    chosen, passes_s = plan(0, 1, 0, schedule="gpipe"), [(1, 1)] * 3

    assert starts_s(free_world(2), chosen, passes_s, 0) == [0, 1, 2]
    assert starts_s(free_world(2), chosen, passes_s, 2) == [3, 4, 5]


def test_fair_sharing_by_hand():
    """Two activations of 2 bytes, ready at 1 and 2 s, on a wire of 1 byte/s.

    The first has 1 byte when the second comes, and half the wire from then on: it leaves at 4, the
    second at 5.
    """
    topology = with_transport(world("AB", {"AB": (1.0, 0.0), "BA": FREE}), sharing="fair")
    workload = unit_workload([(8, 8), (8, 8)], num_microbatches=2, message_bytes=2.0)

    result = simulate_compiled(topology, workload, plan(0, 1, schedule="gpipe"))
    forward = [move[4:] for move in result.transfers if move.kind == "F"]
    assert forward == [(1, 4, 4), (2, 5, 5)]
    assert result.links[0].busy_s == 4


def test_no_queues_by_hand():
    """Two activations of 2 bytes, ready at 1 and 2 s, each alone on 1 byte/s: gone at 3 and 4."""
    topology = with_transport(world("AB", {"AB": (1.0, 0.0), "BA": FREE}), sharing="none")
    workload = unit_workload([(8, 8), (8, 8)], num_microbatches=2, message_bytes=2.0)

    result = simulate_compiled(topology, workload, plan(0, 1, schedule="gpipe"))
    forward = [move[4:] for move in result.transfers if move.kind == "F"]
    assert forward == [(1, 3, 3), (2, 4, 4)]
    assert result.links[0].busy_s == 4


@pytest.mark.parametrize(("sharing", "second_s"), [("fifo", 5.25), ("none", 4.25)])
def test_wires_inside_a_domain_by_hand(sharing, second_s):
    """Two devices; activations of 8 bytes leave at 1 and 2 s, take 2 s at 4 bytes/s and 0.25 s.

    The second device does the first at 3.25 s. The second is there at 4.25 s if it need not wait.
    """
    topology = replace(
        Topology.of([gpus("A", 2, (4.0, 0.25))], []), transport=Transport(sharing=sharing)
    )
    chosen = Plan(
        placement=Placement(domain_of_layer=(0, 0)),
        schedule="gpipe",
        parallelism=(Parallelism(pipeline=2),),
    )
    workload = unit_workload([(1, 2)] * 2, num_microbatches=2, message_bytes=8.0)

    result = simulate_compiled(topology, workload, chosen)
    forward = [span.start_s for span in result.spans if (span.stage, span.kind) == (1, "F")]
    assert forward == [3.25, second_s]


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

    lowered = lower(topology, workload, plan(0, 1))
    assert run_program(lowered.program, new_state(lowered.program)) == BEYOND
    with pytest.raises(StarvationError, match="down for ever from 2 s on, with 3 bytes"):
        simulate_compiled(topology, workload, plan(0, 1))
    assert moves_end_s(topology, [LayerMove(0, 0, 1, 4.0)]) is None


def test_a_wire_that_starves_says_which():
    topology = moving(world("AB", {"AB": (1.0, 0.0), "BA": (1.0, 0.0)}), (2.0, 0.0, 1.0), link=0)
    workload = unit_workload([(1, 1), (1, 1)], num_microbatches=1, message_bytes=4.0)
    program = lower(topology, workload, plan(0, 1)).program
    pieces, links = Pieces(topology), program.links.copy()
    pieces.extend(10.0)
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
    program = lower(free_world(2), workload, plan(0, 1)).program
    orders = (
        (Operation("B", 0, 0), Operation("F", 0, 0)),
        (Operation("F", 0, 1), Operation("B", 0, 1)),
    )
    program = program._replace(operations=operations_of(orders, (2,), 1))

    assert run_program(program, new_state(program)) == DEADLOCK


def test_an_iteration_that_outlasts_the_first_look_at_its_links():
    """The link is down from 2 s to 1e4 s, far longer than all work."""
    topology = moving(
        world("AB", {"AB": (1.0, 0.0), "BA": (1.0, 0.0)}), (2.0, 0.0, 1.0), (1e4, 0.5, 2.0)
    )
    workload = unit_workload([(1, 1), (1, 1)], num_microbatches=2, message_bytes=4.0)

    found = simulate_compiled(topology, workload, plan(0, 1))
    assert found.makespan_s > 1e4
    assert found == simulate(topology, workload, plan(0, 1))


@given(data=st.data(), topology=topologies(min_domains=2), horizons_s=st.lists(st.floats(0, 100)))
def test_courses_are_known_as_far_as_asked_for(data, topology, horizons_s):
    """Piece after piece without a gap, until the horizon or the end of the trace."""
    topology = replace(topology, movement=data.draw(replays(topology)))
    pieces, links = Pieces(topology), np.zeros(len(topology.links), lower_links(topology).dtype)
    assert not pieces.reach(0, 0.0)
    for horizon_s in horizons_s:
        pieces.extend(horizon_s)
    found = pieces.write(links)

    law = topology.movement.law
    ends_s = math.inf if law.holds_last else law.series[0].times_s[-1]
    horizon_s = max(horizons_s, default=-1.0)
    for index, (first, end) in enumerate(links[["first_piece", "end_piece"]].tolist()):
        until_s = found["until_s"][first:end]
        assert np.all(np.diff(until_s) > 0)
        assert pieces.reach(index, horizon_s) == (0 <= horizon_s < ends_s)


def lower_links(topology: Topology) -> np.ndarray:
    """Links of a program of a world."""
    workload = unit_workload([(1, 1)] * 2, num_microbatches=1)
    return lower(topology, workload, plan(0, 0)).program.links


SIZES = {
    "num_workers": 64,
    "num_operations": 4096,
    "num_stages": 64,
    "num_devices": 64,
    "num_replicas": 4,
    "num_messages": 8192,
    "num_transfers": 32768,
    "num_links": 16,
    "num_local_wires": 64,
    "num_members": 64,
}


def figures(state: State) -> tuple[float, list[float], list[float]]:
    """What a run has come to, recorded or not."""
    return (
        float(state.outcome["end_s"][0]),
        state.stages["busy_s"].tolist(),
        state.links[["busy_s", "num_bytes"]].tolist(),
    )


@given(data=st.data(), topology=topologies(min_domains=2), workload=workloads())
def test_one_state_serves_programs_in_turn(data, topology, workload):
    """Nothing is left from the program before, and nothing changes where no record is kept."""
    topology = replace(topology, transport=data.draw(transports()))
    state = make_state(**SIZES, is_recorded=False)
    for _ in range(3):
        plans = any_plans(topology, workload)
        chosen = data.draw(plans.filter(partial(can_be_scheduled, topology, workload)))
        recorded = lower(topology, workload, chosen).program
        unrecorded = lower(topology, workload, chosen, is_recorded=False).program
        own = new_state(recorded)
        assert run_program(recorded, own) == run_program(unrecorded, state) == OK

        end_s, busy_s, links = figures(state)
        counts = len(own.stages), len(own.links)
        assert (end_s, busy_s[: counts[0]], links[: counts[1]]) == figures(own)


def can_be_scheduled(topology: Topology, workload: Workload, chosen: Plan) -> bool:
    """Whether the schedule of a plan can be had."""
    try:
        orders_of_plan(topology, workload, chosen)
    except ValueError:
        return False
    return True


def drawn_world() -> Topology:
    """Three domains in a row whose links are drawn every second."""
    links = dict.fromkeys(["AB", "BA", "BC", "CB"], (1.0, 0.5))
    law = Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=1.0)
    return replace(world("ABC", links), movement=Movement(law=law, seed=0))


def test_many_seeds_at_once_are_the_same_as_one_by_one():
    topology, seeds = drawn_world(), np.array([3, 0, 2**63 - 1])
    workload = unit_workload([(1, 1)] * 3, num_microbatches=4, message_bytes=1.0)
    program = lower(topology, workload, plan(0, 1, 2)).program

    makespans_s = np.zeros(len(seeds))
    assert run_seeds(program, new_state(program), seeds, makespans_s) == len(seeds)
    for seed, makespan_s in zip(seeds.tolist(), makespans_s.tolist(), strict=True):
        moved = replace(topology, movement=replace(topology.movement, seed=seed))
        assert simulate(moved, workload, plan(0, 1, 2)).makespan_s == makespan_s
    assert len(set(makespans_s)) == len(seeds)


def test_threads_share_a_program():
    """It is only read; each has a state."""
    topology = drawn_world()
    workload = unit_workload([(1, 1)] * 6, num_microbatches=8, message_bytes=1.0)
    chosen = Plan(placement=Placement(domain_of_layer=(0, 1, 2, 0, 1, 2)))
    program = lower(topology, workload, chosen).program

    def makespan_s(_: int) -> float:
        state = new_state(program)
        assert run_program(program, state) == OK
        return float(state.outcome["end_s"][0])

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(makespan_s, range(64)))
    assert found == {simulate(topology, workload, chosen).makespan_s}


@given(groups=st.lists(st.tuples(st.integers(0, 5), st.floats(0.0, 1.0)), min_size=2, max_size=2))
def test_two_wires_divide_a_medium_as_any_number_do(groups):
    expected = equal_part_of_any([group for group in groups if group[0]])

    assert equal_share(*groups[0], *groups[1]) == expected

"""States and programs of the compiled engine: used in turn, by threads, for many seeds."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sending import moving, transports
from strategies import plan, topologies, unit_workload, workloads, world
from ties import any_plans, replays

from bench.kernels.seeded import run_seeds
from des import Movement, Placement, Plan, Topology, UniformLaw, Workload, simulate
from des.compiled.kernels.fair_sharing import equal_share
from des.compiled.kernels.general import run_program
from des.compiled.kernels.program import OK, State
from des.compiled.links import Pieces
from des.compiled.pack import pack
from des.compiled.simulate import simulate_compiled
from des.compiled.state import ProgramSizes, make_state, new_state
from des.costs.feasibility import assign
from des.dynamics.link_course import Weather
from des.engine.fair_wire import equal_part as equal_part_of_any
from des.program.lowering import lower


def test_an_iteration_that_outlasts_the_first_look_at_its_links():
    """The link is down from 2 s to 1e4 s, far longer than all work."""
    topology = moving(
        world("AB", {"AB": (1.0, 0.0), "BA": (1.0, 0.0)}), (2.0, 0.0, 1.0), (1e4, 0.5, 2.0)
    )
    workload = unit_workload([(1, 1), (1, 1)], num_microbatches=2, message_bytes=4.0)

    found = simulate_compiled(topology, workload, plan(0, 1))
    assert found.makespan_s > 1e4
    assert found == simulate(topology, workload, plan(0, 1))


@given(
    data=st.data(),
    topology=topologies(min_domains=2),
    times_s=st.lists(st.floats(0, 100), min_size=1),
)
def test_courses_are_known_where_asked_for(data, topology, times_s):
    """Pieces are those of the weather, in order and apart; until the end of the trace."""
    topology = replace(topology, movement=data.draw(replays(topology)))
    pieces, links = Pieces(topology, 1), np.zeros(len(topology.links), lower_links(topology).dtype)
    law = topology.movement.law
    ends_s = math.inf if law.holds_last else law.series[0].times_s[-1]
    horizon_s = data.draw(st.floats(100, 200))
    for link in range(len(topology.links)):
        for time_s in times_s:
            if not is_known(pieces.write(links), links[link], time_s):
                assert pieces.extend(link, time_s, horizon_s) == (time_s < ends_s)
    found = pieces.write(links)

    weather = Weather(topology.movement, topology.links)
    for index, (first, end) in enumerate(links[["first_piece", "end_piece"]].tolist()):
        until_s, from_s = found["until_s"][first:end], found["from_s"][first:end]
        assert np.all(np.diff(until_s) > 0)
        assert np.all(from_s < until_s)
        assert np.all(from_s[1:] >= until_s[:-1])
        for piece in found[first:end].tolist():
            assert weather.span(index, piece[1]) == (piece[1], piece[0], *piece[2:])
        for time_s in times_s:
            assert is_known(found, links[index], time_s) == (time_s < ends_s)


def is_known(pieces: np.ndarray, link: np.void, time_s: float) -> bool:
    """Whether one of a link's pieces holds a time."""
    own = pieces[link["first_piece"] : link["end_piece"]]
    return bool(np.any((own["from_s"] <= time_s) & (time_s < own["until_s"])))


def lower_links(topology: Topology) -> np.ndarray:
    """Links of a program of a world."""
    workload = unit_workload([(1, 1)] * 2, num_microbatches=1)
    return pack(topology, lower(topology, workload, plan(0, 0))).links


SIZES = {
    "num_workers": 64,
    "num_operations": 4096,
    "num_stages": 64,
    "num_devices": 64,
    "num_groups": 64,
    "num_messages": 8192,
    "num_transfers": 32768,
    "num_links": 16,
    "num_local_wires": 64,
    "num_members": 64,
}


def figures(state: State) -> tuple[float, list[float], list[float]]:
    """Outcome of a run, recorded or not."""
    return (
        float(state.outcome["end_s"][0]),
        state.stages["busy_s"].tolist(),
        state.links[["busy_s", "num_bytes"]].tolist(),
    )


@given(data=st.data(), topology=topologies(min_domains=2), workload=workloads())
def test_one_state_serves_programs_in_turn(data, topology, workload):
    """Nothing is left from the program before, and nothing changes where no record is kept."""
    topology = replace(topology, transport=data.draw(transports()))
    state = make_state(ProgramSizes(**SIZES, is_recorded=False))
    for _ in range(3):
        plans = any_plans(topology, workload)
        chosen = data.draw(plans.filter(partial(can_be_scheduled, topology, workload)))
        program = lower(topology, workload, chosen)
        recorded, unrecorded = (
            pack(topology, program, is_recorded=recorded) for recorded in (True, False)
        )
        own = new_state(recorded)
        assert run_program(recorded, own) == run_program(unrecorded, state) == OK

        end_s, busy_s, links = figures(state)
        counts = len(own.stages), len(own.links)
        assert (end_s, busy_s[: counts[0]], links[: counts[1]]) == figures(own)


def can_be_scheduled(topology: Topology, workload: Workload, chosen: Plan) -> bool:
    """Whether the schedule of a plan can be had."""
    try:
        assign(topology, workload, chosen)
    except ValueError:
        return False
    return True


def drawn_world() -> Topology:
    """Three domains in a row whose links are drawn every second."""
    links = dict.fromkeys(["AB", "BA", "BC", "CB"], (1.0, 0.5))
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=1.0)
    return replace(world("ABC", links), movement=Movement(law=law, seed=0))


def test_many_seeds_at_once_are_the_same_as_one_by_one():
    topology, seeds = drawn_world(), np.array([3, 0, 2**63 - 1])
    workload = unit_workload([(1, 1)] * 3, num_microbatches=4, message_bytes=1.0)
    program = pack(topology, lower(topology, workload, plan(0, 1, 2)))

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
    program = pack(topology, lower(topology, workload, chosen))

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

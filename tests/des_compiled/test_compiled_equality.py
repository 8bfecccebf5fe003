"""The compiled engine does the same as the readable one, to the last bit of every span.

``make soak ARGS=tests/des_compiled/test_compiled_equality.py`` compares thousands of worlds instead
of hundreds.
"""

import math
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import movements, none_or
from noded import with_nodes
from sending import courses, moving, transports
from sharing import parallel_plans
from strategies import cases, corrections, topologies, workloads
from ties import any_plans, even_corrections, even_workloads, even_worlds, replays

from des import (
    NO_CORRECTIONS,
    Corrections,
    IterationResult,
    Movement,
    Plan,
    StarvationError,
    Topology,
    UniformLaw,
    Workload,
    migration_s,
    simulate,
)
from des.compiled.simulate import moves_end_s, simulate_compiled
from des.program.moves import layer_moves

LEAST_TIME_S = 0.05
"""CPU time below which no engine is expensive: of conversions, and of other work of the machine."""
MOST_RUNS = 5
MOST_MEMORY_GIB = 1.0
"""Resident memory of the process of these tests at its most, over some thousand worlds."""
MOST_MEMORY_KIB = 2**19
"""Resident memory that a simulation may add, with the code that is compiled for it."""

Outcome = IterationResult | tuple[type[Exception], str]
Case = tuple[Topology, Workload, Plan, Corrections]


def outcome(simulator: Callable[..., IterationResult], case: Case, step: int) -> Outcome:
    """Result of a simulation, or why there is none."""
    try:
        return simulator(*case, step=step)
    except (ValueError, RuntimeError) as error:
        return type(error), str(error)


def require_equal(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    step: int = 0,
) -> None:
    """Let both engines do the same; the first difference is shown by what it is in."""
    case = (topology, workload, plan, corrections)
    expected, found = outcome(simulate, case, step), outcome(simulate_compiled, case, step)
    if isinstance(expected, IterationResult) and isinstance(found, IterationResult):
        assert found.spans == expected.spans
        assert found.transfers == expected.transfers
    assert found == expected


@given(
    data=st.data(),
    world=even_worlds(),
    workload=even_workloads(),
    corrections=even_corrections(),
    step=st.integers(0, 3),
)
def test_what_happens_at_the_same_time_happens_in_the_same_order(
    data, world, workload, corrections, step
):
    plan = data.draw(any_plans(world, workload))

    require_equal(world, workload, plan, corrections, step=step)


@given(
    data=st.data(),
    topology=topologies(min_domains=2),
    workload=workloads(),
    corrections=corrections(),
    step=st.integers(0, 3),
)
def test_links_that_stand_still(data, topology, workload, corrections, step):
    plan = data.draw(any_plans(topology, workload))
    world = replace(topology, transport=data.draw(transports()))

    require_equal(world, workload, plan, corrections, step=step)


@given(
    data=st.data(),
    topology=topologies(),
    workload=workloads(),
    corrections=corrections(),
    step=st.integers(0, 3),
)
def test_domains_of_several_nodes(data, topology, workload, corrections, step):
    plan = data.draw(parallel_plans(topology, workload))
    world = replace(data.draw(with_nodes(topology, plan)), transport=data.draw(transports()))

    require_equal(world, workload, plan, corrections, step=step)


@given(
    data=st.data(),
    topology=topologies(min_domains=2),
    workload=workloads(),
    corrections=corrections(),
    movement=movements(),
)
def test_links_that_move_by_any_law(data, topology, workload, corrections, movement):
    plan = data.draw(any_plans(topology, workload))
    world = replace(topology, transport=data.draw(transports()), movement=movement)

    require_equal(world, workload, plan, corrections)


@st.composite
def drawn_movements(draw: st.DrawFn) -> Movement:
    """Links that are all redrawn at intervals; the compiled engine draws for itself."""
    law = UniformLaw(
        bandwidth_fluctuation=draw(none_or(1e-3, 0.95)),
        latency_jitter=draw(none_or(1e-3, 0.95)),
        update_interval_s=draw(st.floats(0.1, 5.0) | st.sampled_from([0.5, 1.0])),
        correlation=draw(st.sampled_from([0.0, 0.0, 0.5])),
    )
    start_s = draw(st.just(0.0) | st.floats(0.0, 1e6))
    return Movement(law=law, seed=draw(st.integers(0, 2**63 - 1)), start_s=start_s)


@given(
    data=st.data(),
    topology=topologies(min_domains=2),
    workload=workloads(),
    movement=drawn_movements(),
)
def test_links_that_are_drawn_every_so_often(data, topology, workload, movement):
    plan = data.draw(any_plans(topology, workload))
    world = replace(topology, transport=data.draw(transports()), movement=movement)

    require_equal(world, workload, plan)


def slowed(topology: Topology) -> Topology:
    """The same with a tenth of the bandwidth of links, and less still inside domains."""
    domains = tuple(
        replace(one, intra_bandwidth_bytes_per_s=one.intra_bandwidth_bytes_per_s / 1e4)
        for one in topology.domains
    )
    links = tuple(
        replace(one, bandwidth_bytes_per_s=one.bandwidth_bytes_per_s / 10) for one in topology.links
    )
    return replace(topology, domains=domains, links=links)


@settings(max_examples=examples(10))  # iterations are long, and links change in them all the time
@given(
    data=st.data(),
    topology=topologies(min_domains=2).map(slowed),
    workload=workloads(),
    movement=st.none() | movements() | drawn_movements(),
    sharing=st.sampled_from(["fifo", "none"]),
)
def test_messages_that_are_under_way_for_longer_than_passes_take(
    data, topology, workload, movement, sharing
):
    """Many are on a link at a time where each has it to itself, and see it at times in any order.

    They are also on the wires between the devices of a domain.
    """
    plan = data.draw(parallel_plans(topology, workload))
    transport = data.draw(transports(sharings=(sharing,)))

    require_equal(replace(topology, transport=transport, movement=movement), workload, plan)


@given(data=st.data(), case=cases(min_domains=2), transport=transports())
def test_links_that_follow_a_trace(data, case, transport):
    """Some traces end too early, which both engines refuse alike."""
    topology, workload, plan = case
    movement = data.draw(replays(topology))

    require_equal(replace(topology, transport=transport, movement=movement), workload, plan)


@given(case=cases(min_domains=2), transport=transports(), course=courses())
def test_links_that_fail_and_come_back(case, transport, course):
    topology, workload, plan = case
    world = replace(moving(topology, *course), transport=transport)

    require_equal(world, workload, plan)


def cost_of(simulator: Callable[..., IterationResult], case: Case) -> tuple[Outcome, float]:
    """Outcome of a simulation and its CPU time. [s]"""
    began_s = time.process_time()
    found = outcome(simulator, case, 0)
    return found, time.process_time() - began_s


def memory_kib(name: str) -> int:
    """Resident memory of this process: now (VmRSS), or at its most (VmHWM)."""
    return int(Path("/proc/self/status").read_text("utf-8").partition(f"{name}:")[2].split()[0])


@pytest.mark.soak
@given(
    data=st.data(),
    topology=topologies(min_domains=2) | topologies(min_domains=2).map(slowed),
    workload=workloads(),
    corrections=corrections(),
    movement=st.none() | movements() | drawn_movements(),
)
def test_no_world_is_expensive_for_the_compiled_engine(
    data, topology, workload, corrections, movement
):
    """``EXAMPLES=20000 make soak ARGS="tests/des_compiled -k expensive"``: ten times the other."""
    plan = data.draw(any_plans(topology, workload))
    world = replace(topology, transport=data.draw(transports()), movement=movement)
    case = (world, workload, plan, corrections)
    expected, readable_s = cost_of(simulate, case)
    Path("/proc/self/clear_refs").write_text("5", "utf-8")  # the most begins now
    before_kib = memory_kib("VmRSS")
    least_s = math.inf  # of some runs: code may be compiled, or other work be in the way
    for _ in range(MOST_RUNS):
        found, compiled_s = cost_of(simulate_compiled, case)
        least_s = min(least_s, compiled_s)
        if least_s <= max(10.0 * readable_s, LEAST_TIME_S):
            break

    assert found == expected
    assert least_s <= max(10.0 * readable_s, LEAST_TIME_S)
    assert memory_kib("VmHWM") - before_kib <= MOST_MEMORY_KIB
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2 <= MOST_MEMORY_GIB


def require_equal_moves(
    topology: Topology, workload: Workload, old: Plan, new: Plan, *, corrections: Corrections
) -> None:
    """Let both engines change a plan."""
    expected: float | None
    try:
        expected = migration_s(topology, workload, old, new, restart_s=0.0, corrections=corrections)
    except StarvationError:
        expected = None
    moves = list(layer_moves(topology, workload, old, new, corrections))
    assert moves_end_s(topology, moves, corrections) == expected


@given(
    data=st.data(), world=even_worlds(), workload=even_workloads(), corrections=even_corrections()
)
def test_changes_of_plan_at_whole_seconds(data, world, workload, corrections):
    old, new = data.draw(any_plans(world, workload)), data.draw(any_plans(world, workload))

    require_equal_moves(world, workload, old, new, corrections=corrections)


@given(
    data=st.data(),
    topology=topologies(min_domains=2),
    workload=workloads(),
    corrections=corrections(),
    movement=st.none() | movements(),
)
def test_changes_of_plan(data, topology, workload, corrections, movement):
    world = replace(topology, transport=data.draw(transports()), movement=movement)
    old, new = data.draw(any_plans(world, workload)), data.draw(any_plans(world, workload))

    require_equal_moves(world, workload, old, new, corrections=corrections)

"""Repeated phases are foreseen, and no result differs.

The same runs with a change of bandwidth to the same bandwidth, far in the future, foresee nothing.
Runs of every kind, with rings in step and rings apart as well, are in `test_astra_shortcuts.py`.
"""

import pytest
from astra_runs import run
from astra_traces import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    REDUCE_SCATTER,
    Case,
    collective,
    compute,
    network_file,
    system_file,
)
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_sim import RunOptions
from astra_sim.system.repeats import RepeatedPhases

LATE_NS = 10**15
ALGORITHMS = ("ring", "direct", "direct1", "direct2", "halvingDoubling")


def simulated(case: Case, backend: str, num_queues: int = 1) -> tuple[object, ...]:
    """All results of a run, also of one that does not end."""
    options = RunOptions(num_queues_per_dimension=num_queues)
    result = run(case, backend, strict=False, options=options)
    return result.ranks, result.spans, result.lines, result.diagnosis, result.num_events


def in_full(case: Case) -> Case:
    """The same case with every phase simulated."""
    change = {"time_ns": LATE_NS, "bandwidth": case.network["bandwidth"][0]}
    return case.changed(network={**case.network, "bandwidth_changes": [change]})


@st.composite
def repeating(draw: st.DrawFn) -> Case:
    """Every NPU computes and joins the same collectives, some of them in step."""
    topology = draw(st.sampled_from(["Ring", "FullyConnected", "Switch"]))
    num_npus = draw(st.integers(3, 6) | st.just(8))
    algorithm = draw(st.sampled_from(ALGORITHMS))
    kinds = [ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER]
    kinds += [] if algorithm == "halvingDoubling" else [ALL_TO_ALL]
    steps = draw(
        st.lists(st.tuples(st.sampled_from(kinds), st.sampled_from([4096, 2**20])), max_size=3)
    )
    late = draw(st.sampled_from([0, 0, 3]))
    ranks = []
    for rank in range(num_npus):
        nodes = [compute(0, 2 + late * (rank % 2))]
        for number, (kind, num_bytes) in enumerate(steps):
            nodes.append(collective(2 * number + 1, kind, num_bytes, [nodes[-1].id]))
            nodes.append(compute(2 * number + 2, 1, [nodes[-1].id - number % 2]))
        ranks.append(nodes)
    system = system_file(
        algorithm,
        preferred_dataset_splits=draw(st.integers(1, 4)),
        active_chunks_per_dimension=draw(st.integers(1, 2)),
        local_mem_bw=draw(st.sampled_from([0, 1600])),
        endpoint_delay=draw(st.sampled_from([1, 10, 1000])),
    )
    latency = draw(st.sampled_from([0.0, 500.0]))
    return Case(
        ranks=ranks, network=network_file(topology, num_npus, latency=latency), system=system
    )


@settings(max_examples=examples(60))
@given(
    case=repeating(),
    backend=st.sampled_from(["unaware", "aware"]),
    num_queues=st.integers(1, 2),
)
def test_a_run_is_the_same_with_every_phase_simulated(case, backend, num_queues):
    assert simulated(case, backend, num_queues) == simulated(in_full(case), backend, num_queues)


@st.composite
def met_again(draw: st.DrawFn) -> Case:
    """Phases of which all start at one tick, each time some positions further round.

    Every NPU computes for 20 us between collectives, in two parts: the shorter the first one, the
    earlier the NPU comes in the order of the tick.
    """
    topology = draw(st.sampled_from(["Ring", "FullyConnected", "Switch"]))
    num_npus = draw(st.sampled_from([4, 8]))
    algorithm = draw(st.sampled_from([*["halvingDoubling"] * 4, *ALGORITHMS]))
    kinds = [ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER]
    kinds += [] if algorithm == "halvingDoubling" else [ALL_TO_ALL]
    kind, sizes = draw(st.sampled_from(kinds)), draw(st.sampled_from([[2**20], [4096, 2**20]]))
    ranks = [[] for _ in range(num_npus)]
    parts = draw(st.permutations(range(1, num_npus + 1)))
    for number in range(draw(st.integers(2, 4))):
        first, further = 3 * number, draw(st.integers(0, num_npus - 1))
        for nodes, part in zip(ranks, parts[further:] + parts[:further], strict=True):
            nodes.append(compute(first, part, [first - 1] if first else []))
            nodes.append(compute(first + 1, 20 - part, [first]))
            nodes.append(collective(first + 2, kind, sizes[number % len(sizes)], [first + 1]))
    system = system_file(
        algorithm,
        scheduling_policy=draw(st.sampled_from(["LIFO", "FIFO"])),
        preferred_dataset_splits=draw(st.integers(1, 2)),
    )
    return Case(ranks=ranks, network=network_file(topology, num_npus), system=system)


@settings(max_examples=examples(60))
@given(case=met_again(), backend=st.sampled_from(["unaware", "aware"]))
def test_phases_met_again_in_another_order_of_members_are_as_with_every_phase_simulated(
    case, backend
):
    assert simulated(case, backend) == simulated(in_full(case), backend)


@pytest.mark.parametrize("kind", [ALL_GATHER, REDUCE_SCATTER])
@pytest.mark.parametrize("topology", ["Ring", "Switch", "FullyConnected"])
def test_halving_and_doubling_begun_by_another_member_ends_in_its_own_order(kind, topology):
    """NPU 0 starts first, then NPU 1: partners are not the same positions further on."""
    ranks = [
        [
            compute(0, 1),
            collective(1, kind, 2**20, [0]),
            compute(2, part, [1]),
            compute(3, 5 - part, [2]),
            collective(4, kind, 2**20, [3]),
        ]
        for part in (4, 1, 2, 3)
    ]
    case = Case(ranks=ranks, network=network_file(topology), system=system_file("halvingDoubling"))

    assert simulated(case, "aware") == simulated(in_full(case), "aware")


@pytest.mark.parametrize("backend", ["unaware", "aware"])
@pytest.mark.parametrize(("algorithm", "num_npus"), [("direct2", 6), ("direct3", 8)])
def test_phases_that_may_end_with_reductions_of_no_time_are_as_with_every_phase_simulated(
    backend, algorithm, num_npus
):
    """These count as events of their own, after the first member's end."""
    ranks = [[compute(0, 3), collective(1, ALL_REDUCE, 4096, [0])]] * num_npus
    system = system_file(algorithm, local_mem_bw=0, preferred_dataset_splits=3)
    case = Case(ranks=ranks, network=network_file("Ring", num_npus), system=system)

    assert simulated(case, backend) == simulated(in_full(case), backend)


@pytest.mark.parametrize("backend", ["unaware", "aware"])
@pytest.mark.parametrize("topology", ["Ring", "Switch", "FullyConnected"])
@pytest.mark.parametrize("algorithm", ["ring", "direct", "halvingDoubling"])
def test_of_many_equal_chunks_few_are_simulated(backend, topology, algorithm, monkeypatch):
    foreseen = []
    whole = RepeatedPhases._foresee

    def counted(self, course, runs):
        foreseen.append(len(runs))
        whole(self, course, runs)

    monkeypatch.setattr(RepeatedPhases, "_foresee", counted)
    case = Case(
        ranks=[[collective(0, ALL_REDUCE, 2**20)]] * 8,
        network=network_file(topology, 8),
        system=system_file(algorithm, preferred_dataset_splits=16),
    )

    once = simulated(case, backend)
    assert len(foreseen) >= 12
    assert once == simulated(in_full(case), backend)

"""Laws of messages of the simulator, for any world, workload and plan."""

import dataclasses
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import movements
from message_times import arrived_s
from strategies import cases, corrections, plan, unit_workload, world

from des import IterationResult, Movement, UniformLaw, simulate
from des.costs.message_times import corrected, quickest_message_s
from des.schedules import MESSAGE_OF

HALF_SECOND = UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.9, update_interval_s=0.5)


@settings(max_examples=examples(150), deadline=None)
@given(
    case=cases(min_domains=3, fully=False), movement=st.none() | movements(), found=corrections()
)
def test_every_message_leaves_as_soon_as_it_is_there_and_the_wire_is_free(case, movement, found):
    topology, workload, chosen = case
    topology = dataclasses.replace(topology, movement=movement)
    result = simulate(topology, workload, chosen, found)
    ready_s = made_s(result)
    free_s, arrived_s, last_ready_s = (defaultdict(float) for _ in range(3))
    in_time = sorted(result.transfers, key=lambda move: (move.start_s, move.end_s, move.arrival_s))
    for transfer in in_time:
        message = (transfer.stage, transfer.kind, transfer.microbatch)
        link = corrected(topology.links[transfer.link], found)
        assert transfer.start_s == max(ready_s[message], free_s[transfer.link])
        assert ready_s[message] >= last_ready_s[transfer.link] * (1 - 1e-12)
        assert transfer.arrival_s >= max(transfer.end_s, arrived_s[transfer.link])
        if movement is None:
            serialisation_s = workload.message_bytes / link.bandwidth_bytes_per_s
            left_s = transfer.start_s + found.message_overhead_s
            assert transfer.end_s == left_s + serialisation_s
            assert transfer.arrival_s == transfer.end_s + link.latency_s
        free_s[transfer.link] = transfer.end_s
        arrived_s[transfer.link] = transfer.arrival_s
        last_ready_s[transfer.link] = ready_s[message]
        ready_s[message] = transfer.arrival_s


def made_s(result: IterationResult) -> dict[tuple[int, str, int], float]:
    """When each message was made, by stage, kind and microbatch."""
    return {
        (span.stage, MESSAGE_OF[span.kind], span.microbatch): span.end_s
        for span in result.spans
        if span.kind in MESSAGE_OF
    }


def assert_no_overtaking(result: IterationResult) -> None:
    """On every hop the messages of one sender and kind leave and arrive as they were sent."""
    on_hop = defaultdict(list)
    for transfer in result.transfers:
        on_hop[transfer.link, transfer.stage, transfer.kind].append(transfer)
    for transfers in on_hop.values():
        for earlier, later in pairwise(transfers):
            assert earlier.microbatch < later.microbatch
            assert earlier.end_s <= later.start_s
            assert earlier.arrival_s <= later.arrival_s


@given(case=cases(min_domains=3, fully=False), movement=st.none() | movements())
def test_messages_do_not_overtake_each_other(case, movement):
    topology, workload, chosen = case

    assert_no_overtaking(
        simulate(dataclasses.replace(topology, movement=movement), workload, chosen)
    )


@pytest.mark.parametrize("seed", [1, 5, 36])
def test_messages_that_arrive_together_go_on_in_order(seed):
    """Falling latencies let messages arrive at B at the very same time; C still gets them in order.

    Equal times must be equal on the clock too, not apart by a rounding error.
    """
    rng = np.random.default_rng(seed)
    topology = world(
        "ABC",
        {ends: (rng.uniform(1e6, 1e8), rng.uniform(0.1, 2.0)) for ends in ("AB", "BA", "BC", "CB")},
    )
    topology = dataclasses.replace(topology, movement=Movement(law=HALF_SECOND, seed=seed))
    for _ in range(20):
        workload = unit_workload(
            rng.uniform(0.01, 0.1, size=(2, 2)).tolist(),
            num_microbatches=20,
            message_bytes=rng.uniform(1e3, 1e6),
        )
        assert_no_overtaking(simulate(topology, workload, plan(0, 2, schedule="gpipe")))


@given(
    case=cases(min_domains=3, fully=False), movement=st.none() | movements(), found=corrections()
)
def test_no_message_is_quicker_than_the_quickest(case, movement, found):
    """From the end of the pass that made it to its arrival, over however many hops."""
    topology, workload, chosen = case
    topology = dataclasses.replace(topology, movement=movement)
    result = simulate(topology, workload, chosen, found)

    ready_s = made_s(result)
    domains = [stage.domain for stage in chosen.placement.stages]
    for (stage, kind, microbatch), time_s in arrived_s(result).items():
        ends = domains[stage], domains[stage + (1 if kind == "F" else -1)]
        least_s, _ = quickest_message_s(topology, *ends, workload.message_bytes, found)
        assert time_s - ready_s[stage, kind, microbatch] >= least_s - 1e-9 * time_s

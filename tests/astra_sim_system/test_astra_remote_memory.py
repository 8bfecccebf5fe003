"""Remote memory: who waits for whom, and in which order things happen at one tick."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_sim.core.events import EventQueue, Timers
from astra_sim.files.errors import AstraSimError, DivisionError
from astra_sim.files.memory_config import MemoryConfig
from astra_sim.system.remote_memory import RemoteMemory

LATENCY_NS, BYTES_PER_NS = 100, 7


def memory(kind, **more):
    return MemoryConfig(
        kind=kind, latency_ns=LATENCY_NS, bandwidth_bytes_per_ns=BYTES_PER_NS, **more
    )


def ended_ns(config, requests, num_npus=4):
    """When each request ends; a request is (start_ns, rank, num_bytes), by start."""
    queue = EventQueue()
    served = RemoteMemory(config, num_npus)
    timers = [Timers(queue, rank, lambda *line: None) for rank in range(num_npus)]
    ended = {}

    def begin(number):
        _, rank, num_bytes = requests[number]
        served.request(rank, timers[rank], num_bytes, end, number)

    def end(number):
        assert number not in ended
        ended[number] = queue.now

    for number, (start_ns, *_) in enumerate(requests):
        if start_ns:
            queue.at(start_ns, begin, number)
        else:
            begin(number)
    queue.run()
    return [ended[number] for number in range(len(requests))]


def duration_ns(num_bytes):
    return LATENCY_NS + num_bytes // BYTES_PER_NS


REQUESTS = [(0, 0, 700), (0, 0, 70), (0, 1, 7), (0, 2, 699), (0, 3, 0)]
"""Of 200, 110, 101, 199 and 100 ns."""


@pytest.mark.parametrize(
    ("config", "expected_ns"),
    [
        (memory("per_npu"), [200, 110, 101, 199, 100]),
        (
            memory("per_node", num_nodes=2, num_npus_per_node=2),
            [200, 200 + 110, 200 + 110 + 101, 199, 199 + 100],
        ),
        (memory("pool"), [200, 310, 411, 610, 710]),
        (MemoryConfig(kind="pool", latency_ns=5), [5, 10, 15, 20, 25]),
    ],
)
def test_requests_by_hand(config, expected_ns):
    assert ended_ns(config, REQUESTS) == expected_ns


def test_a_completion_comes_before_the_server_is_free_again():
    """What the first completion asks for waits behind the one that waited already."""
    queue = EventQueue()
    timers = [Timers(queue, rank, lambda *line: None) for rank in range(2)]
    pool = RemoteMemory(memory("pool"), 2)
    story = []

    def note(name):
        story.append((queue.now, name))

    def ask_again(name):
        note(name)
        pool.request(0, timers[0], 0, note, "again")

    pool.request(0, timers[0], 0, ask_again, "first")
    pool.request(1, timers[1], 0, note, "waiting")
    queue.run()

    assert story == [(100, "first"), (200, "waiting"), (300, "again")]


def test_without_a_memory_a_request_is_refused():
    with pytest.raises(AstraSimError, match=r"sys\[3\]: .* NO_MEMORY_EXPANSION") as refused:
        ended_ns(MemoryConfig(), [(0, 3, 1)])
    assert refused.value.exit_code == 1


def test_a_memory_without_a_type_divides_by_zero_once_it_is_used():
    assert ended_ns(MemoryConfig(kind="unset"), []) == []
    with pytest.raises(DivisionError, match=r"sys\[3\]: memory-type: must be given") as refused:
        ended_ns(MemoryConfig(kind="unset"), [(0, 3, 1)])
    assert refused.value.exit_code == 136


def test_a_rank_beyond_the_last_node_is_refused():
    config = memory("per_node", num_nodes=1, num_npus_per_node=3)

    assert ended_ns(config, [(0, 2, 0)]) == [100]
    with pytest.raises(AstraSimError, match=r"sys\[3\]: .* got 1 nodes of 3 NPUs"):
        ended_ns(config, [(0, 3, 0)])


requests = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(0, 3), st.integers(0, 10**6)), max_size=30
).map(lambda drawn: sorted(drawn, key=lambda request: request[0]))


@given(requests=requests)
def test_a_pool_serves_in_order_and_never_rests_while_someone_waits(requests):
    free_ns, expected_ns = 0, []
    for start_ns, _, num_bytes in requests:
        free_ns = max(free_ns, start_ns) + duration_ns(num_bytes)
        expected_ns.append(free_ns)

    assert ended_ns(memory("pool"), requests) == expected_ns


@given(requests=requests)
def test_nodes_do_not_disturb_each_other(requests):
    """Each node's ranks end as they would with a pool of their own."""
    config = memory("per_node", num_nodes=2, num_npus_per_node=2)
    together = ended_ns(config, requests)

    for node in range(2):
        own = [number for number, (_, rank, _) in enumerate(requests) if rank // 2 == node]
        alone = ended_ns(memory("pool"), [requests[number] for number in own])
        assert [together[number] for number in own] == alone


@given(requests=requests)
def test_a_node_of_one_npu_and_a_lone_request_never_wait_for_others(requests):
    alone = [start_ns + duration_ns(num_bytes) for start_ns, _, num_bytes in requests]
    assert ended_ns(memory("per_npu"), requests) == alone

    of_one_npu = ended_ns(memory("per_node", num_nodes=4, num_npus_per_node=1), requests)
    for (_, rank, _), end_ns, alone_ns in zip(requests, of_one_npu, alone, strict=True):
        if [other for _, other, _ in requests].count(rank) == 1:
            assert end_ns == alone_ns

"""Prefix caches, swapping, routers and conversations: cases by hand, conservation of memory."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from des.dynamics.ornstein_uhlenbeck import OrnsteinUhlenbeck
from des.serving.conversations import ConversationLaw, conversation_requests
from des.serving.fleet_engine import Fleet, run
from des.serving.fleet_figures import run_figures
from des.serving.fleet_routers import ROUTERS, RouterTurn
from des.serving.fleet_settings import ScalingLimits
from des.serving.prefix_cache import PrefixCache
from des.serving.request_streams import draw_moving_requests
from tests.fleet_cases import (
    GROWING,
    SECOND,
    Drawn,
    Planned,
    drawn_stream,
    engine,
    fleet_world,
    request,
)
from tests.strategies import unit_links

KEPT = Planned(({},))


def named(number, arrival_s, blocks, output=2):
    """A request whose prompt is blocks of 10 tokens."""
    return replace(request(number, arrival_s, 10 * len(blocks), output), prefix_blocks=blocks)


def test_a_prompt_read_before_is_not_read_again_but_for_its_last_block():
    """Chunks of 20 tokens: 80 take 4 iterations; of the second prompt only 20 tokens are new."""
    blocks = tuple(range(8))
    requests = [named(0, 0.0, blocks), named(1, 9.0, (*blocks[:6], 8, 9))]
    times = {}
    for size in (0, 10):
        small = engine(SECOND, chunk_tokens=20, prefix_block_tokens=size)
        rows = run(fleet_world(requests, {"mixed": 1}, engine=small), KEPT).requests
        times[size] = [(row.ttft_s, row.cached_tokens) for row in rows]

    assert times == {0: [(4.0, 0), (4.0, 0)], 10: [(4.0, 0), (1.0, 60)]}


def test_an_equal_prompt_still_reads_one_block():
    requests = [named(0, 0.0, (1, 2, 3)), named(1, 5.0, (1, 2, 3))]
    small = engine(SECOND, prefix_block_tokens=10)
    history = run(fleet_world(requests, {"mixed": 1}, engine=small), KEPT)
    assert [row.cached_tokens for row in history.requests] == [0, 20]
    assert run_figures(history)["cached_fraction"] == 20 / 60


def test_idle_blocks_go_when_memory_is_short_the_longest_unused_first():
    cache = PrefixCache()
    cache.store((1, 2))
    cache.store((1, 3))
    assert cache.release((1, 2)) == 1
    assert cache.release((1, 3)) == 2
    cache.shrink(1)
    assert [cache.num_leading((block,)) for block in (1, 2, 3)] == [1, 0, 0]


def held_tokens(instance):
    """Tokens that requests hold, each shared block counted once."""
    size = instance.engine.prefix_block_tokens
    present = [*instance.reading, *instance.writing]
    shared = {block for one in present for block in one.request.prefix_blocks[: one.num_shared]}
    return sum(one.held - one.num_shared * size for one in present) + size * len(shared)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**20), swap=st.sampled_from([0.0, 1e9]), moves=st.booleans())
def test_memory_is_conserved_with_shared_blocks_swaps_and_random_scaling(seed, swap, moves):
    law = ConversationLaw(
        mean_turns=4, think_s=1.0, system_tokens=64, new_tokens=40, output_tokens=30,
        read_tokens_per_s=100.0, block_tokens=16, max_tokens=900,
    )  # fmt: skip
    requests = conversation_requests(1.5, 10.0, seed, law)
    small = engine(GROWING, kv_capacity_tokens=1000, prefix_block_tokens=16, swap_bytes_per_s=swap)
    limits = ScalingLimits(max_total=8, drain_timeout_s=1.5, drain_moves_out=moves)
    world = fleet_world(requests, {"mixed": 2}, engine=small, limits=limits, router="prefix_aware")
    fleet, policy = Fleet(world, seed), Drawn(seed)
    memory = policy.first_memory(world)
    while (view := fleet.next_view()) is not None:
        for instance in fleet.manager.instances:
            if not instance.leaving:
                assert instance.used == held_tokens(instance)
            cache = instance.memory.cache
            assert cache is not None
            assert instance.used + cache.num_idle * 16 <= 1000
        decision, memory = policy.decide(view, memory)
        fleet.apply(view, decision)
    rows = fleet.history().requests
    assert all(row.end_s is not None for row in rows)
    assert run(world, policy, seed) == run(world, policy, seed)


def test_a_swapped_request_waits_for_its_memory_and_is_not_read_again():
    """As with recompute, the second of two requests gives way, 1 MB a token at 1 GB/s."""
    requests = [request(0, 0.0, 60, 100), request(1, 0.0, 60, 100)]
    small = engine(SECOND, kv_capacity_tokens=200, max_batch_size=4, swap_bytes_per_s=1e9)
    first, second = run(fleet_world(requests, {"mixed": 1}, engine=small), KEPT).requests

    moved_s = 0.099  # 60 tokens read and 39 written, one way
    assert (first.num_swaps, second.num_swaps, second.num_restarts) == (0, 1, 0)
    assert first.end_s == pytest.approx(100.0 + moved_s)
    assert second.end_s == pytest.approx(100.0 + moved_s + moved_s + 60.0)


def test_turns_of_a_conversation_share_what_was_said_before():
    law = ConversationLaw(block_tokens=64)
    requests = conversation_requests(0.5, 300.0, 3, law)
    assert requests == conversation_requests(0.5, 300.0, 3, law)
    common = law.system_tokens // 64
    by_conversation = {}
    for one in requests:
        assert len(one.prefix_blocks) == one.prompt_tokens // 64
        assert one.prefix_blocks[:common] == tuple(range(common))
        before = by_conversation.get(one.prefix_blocks[-1] >> 20, ())
        assert one.prefix_blocks[: len(before)] == before
        by_conversation[one.prefix_blocks[-1] >> 20] = one.prefix_blocks
    with pytest.raises(ValueError, match="mean_turns"):
        ConversationLaw(mean_turns=0.5)


def test_routers_that_see_the_cache_read_least():
    requests = conversation_requests(0.8, 200.0, 1)
    roomy = engine(GROWING, kv_capacity_tokens=60_000, prefix_block_tokens=128, chunk_tokens=512)
    read = {}
    for name in ("random", "round_robin", "prefix_aware"):
        world = fleet_world(requests, {"mixed": 4}, engine=roomy, router=name)
        read[name] = run_figures(run(world, KEPT))["cached_fraction"]
    assert read["prefix_aware"] > 0.7
    assert read["prefix_aware"] > max(read["random"], read["round_robin"]) + 0.05


@pytest.mark.parametrize(
    ("name", "place"),
    [("least_work", 1), ("jsq", 1), ("token_jsq", 2), ("kv_aware", 0), ("round_robin", 1)],
)
def test_a_router_chooses_by_its_load(name, place):
    class Seen:
        """An instance with given loads."""

        def __init__(self, number, present, due_tokens, used):
            self.number, self.present = number, present
            self.due_tokens, self.used = due_tokens, used

    members = [Seen(0, 3, 50, 10), Seen(1, 1, 60, 500), Seen(2, 2, 0, 400)]
    turn = RouterTurn(number=4, rng=np.random.default_rng(0))
    assert ROUTERS[name](members, None, False, turn) == place


@pytest.mark.parametrize("name", list(ROUTERS))
def test_requests_are_conserved_by_every_router(name):
    world = fleet_world(drawn_stream(4), {"prompt": 2, "token": 2}, router=name)
    rows = run(world, Drawn(4), 4).requests
    assert all(row.end_s is not None for row in rows)


def test_an_unknown_router_is_refused():
    with pytest.raises(ValueError, match="did you mean 'jsq'"):
        fleet_world(drawn_stream(4), {"mixed": 2}, router="jqs")


def test_a_rate_moves_by_a_law_of_links():
    """Counts in windows of 10 s follow the factor of the law, 20 requests a second on average."""
    law = OrnsteinUhlenbeck(bandwidth_sigma=0.5, relaxation_s=20.0, interval_s=1.0)
    requests = draw_moving_requests(law, 20.0, 400.0, 5)
    assert requests == draw_moving_requests(law, 20.0, 400.0, 5)
    counts = np.histogram([one.arrival_s for one in requests], 40, (0.0, 400.0))[0]
    path = law.path(unit_links(1), 5)
    rates = [
        np.mean([path.piece_at(0, 10.0 * bin_ + each).bandwidth_factor for each in range(10)])
        for bin_ in range(40)
    ]
    assert np.corrcoef(counts, rates)[0, 1] > 0.9
    assert counts.sum() == pytest.approx(200.0 * sum(rates), rel=0.05)

"""Groups drawn from scores: always possible ones, with the probabilities that training sees."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.decode import Facts
from agents.hi_ppo.placement.encoder import Encoded
from agents.hi_ppo.plans.group_changes import changed_groups
from agents.hi_ppo.plans.group_decode import GroupScores, GroupTrace, decode_groups
from agents.hi_ppo.plans.group_pointer import (
    GroupPointer,
    GroupPointerScores,
    trace_log_probs,
    traces_of,
)
from agents.hi_ppo.plans.plan_policy import drawn_trace, groups_of, tokens_of, trace_noise

MOST_STAGES, MOST_GROUPS, SIZES = 4, 3, (2, 5, 9)


def drawn_facts(size, seed, link_share=0.8):
    """Domains that each hold a third to all of the model, some pairs without a link."""
    rng = np.random.default_rng(seed)
    can_follow = rng.random((size, size)) < link_share
    np.fill_diagonal(can_follow, False)
    return Facts(
        speed_share=np.full(size, 1.0 / size, dtype=np.float32),
        memory_share=rng.uniform(0.34, 1.2, size).astype(np.float32),
        log_ratio=rng.normal(size=(size, size)).astype(np.float32),
        can_follow=can_follow,
    )


def drawn_scores(sizes, seed):
    """Scores of a pointer with random weights, large enough to prefer some choices."""
    generator = torch.Generator().manual_seed(seed)
    architecture = PlacementArchitecture()
    most = max(sizes)
    encoded = Encoded(
        torch.randn(len(sizes), most, architecture.width, generator=generator),
        torch.randn(len(sizes), most, most, architecture.edge_width, generator=generator),
        torch.randn(len(sizes), architecture.width, generator=generator),
    )
    with torch.no_grad():
        scores = GroupPointer(architecture, generator)(encoded)
    return GroupPointerScores(*(4.0 * part for part in scores))


def drawn_traces(seed, link_share=0.8):
    scores = drawn_scores(SIZES, seed)
    facts = [drawn_facts(size, seed + size, link_share) for size in SIZES]
    generator = torch.Generator().manual_seed(seed)
    traces = [
        drawn_trace(
            scores.of(row, size),
            facts[row],
            trace_noise(6, size, generator, num_greedy=1),
            MOST_STAGES,
            MOST_GROUPS,
        )
        for row, size in enumerate(SIZES)
    ]
    return scores, facts, traces


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.3, 0.8, 1.0]))
def test_groups_share_no_domain_follow_links_and_hold_the_model_before_they_end(seed, link_share):
    _, facts, traces = drawn_traces(seed, link_share)
    for size, known, trace in zip(SIZES, facts, traces, strict=True):
        for tokens in trace.tokens:
            *ended, last = groups_of(tokens, size)
            used = [domain for group in (*ended, last) for domain in group]
            assert len(set(used)) == len(used) > 0
            assert len(ended) < MOST_GROUPS
            for group in (*ended, last):
                assert 1 <= len(group) <= MOST_STAGES
                assert all(known.can_follow[link] for link in pairwise(group))
            assert all(known.memory_share[list(group)].sum() >= 1.0 - 1e-6 for group in ended)


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 10_000))
def test_probabilities_of_compiled_choices_are_those_that_gradients_flow_through(seed):
    scores, _, traces = drawn_traces(seed)
    together = traces_of(traces)
    log_probs, entropies = trace_log_probs(scores, together)
    assert torch.allclose(log_probs, together.log_probs, atol=1e-4)
    assert (entropies >= 0.0).all()


def test_groups_that_are_given_are_as_likely_as_when_they_were_drawn():
    scores, facts, traces = drawn_traces(3)
    size, known, drawn = SIZES[-1], facts[-1], traces[-1]
    given_again = GroupTrace.empty(len(drawn.sizes), size)
    for row, tokens in enumerate(drawn.tokens):
        told = tokens_of(groups_of(tokens, size), size)
        given_again.tokens[row, : len(told)] = told
    noise = np.zeros((len(drawn.sizes), 2 * size, size + 2), dtype=np.float32)
    decode_groups(scores.of(2, size), known, noise, MOST_STAGES, MOST_GROUPS, given_again)
    assert given_again.log_probs.tolist() == drawn.log_probs.tolist()
    assert (given_again.allowed == drawn.allowed).all()


def test_equal_scores_make_the_choices_that_are_possible_equally_likely():
    facts = Facts(
        speed_share=np.full(2, 0.5, dtype=np.float32),
        memory_share=np.ones(2, dtype=np.float32),
        log_ratio=np.zeros((2, 2), dtype=np.float32),
        can_follow=~np.eye(2, dtype=np.bool_),
    )
    trace = GroupTrace.empty(1, 2)
    trace.tokens[0, :4] = tokens_of(((1,), (0,)), 2)
    decode_groups(GroupScores.zeros(2), facts, np.zeros((1, 4, 4), dtype=np.float32), 2, 2, trace)
    # either domain; then the other one, a stop or a break; the other one; a stop
    assert trace.log_probs[0] == pytest.approx(np.log(1 / 2 * 1 / 3), abs=1e-6)


@settings(max_examples=examples(60))
@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 4))
def test_changes_keep_each_domain_once_and_never_empty_a_plan(seed, size, most_groups):
    rng = np.random.default_rng(seed)
    groups = (tuple(rng.permutation(size)[: rng.integers(1, size + 1)].tolist()),)
    for _ in range(20):
        groups = changed_groups(groups, size, most_groups, rng)
        used = [domain for group in groups for domain in group]
        assert len(set(used)) == len(used) > 0
        assert set(used) <= set(range(size))
        assert 1 <= len(groups) <= most_groups
        assert all(groups)

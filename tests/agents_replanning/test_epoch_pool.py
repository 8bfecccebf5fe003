"""Pools of plans: they hold the best of each network, and what is worth having in between."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from epoch_cases import FREE_PAIR, HandWorld, slowed
from search_cases import drawn_case
from strategies import plan, world

from agents.decision.frozen_network import distinct_networks
from agents.judge.steady_judge import SteadyJudge
from agents.planners.search.search import search
from agents.replanning.known_times import KnownTimes
from agents.replanning.plan_costs import PlanTimes
from agents.replanning.pool import candidate_pool, mean_network
from agents.replanning.pool_thinning import choose_plans
from agents.replanning.rules import clairvoyant
from agents.replanning.tables import tables_of, total_s


def drawn_world(seed, num_domains=3, num_layers=8, num_epochs=6):
    """Epochs that are held for two: links and speeds within a third of the base and three times."""
    base, job = drawn_case(seed, num_domains, num_layers)
    rng = np.random.default_rng(seed)
    epochs = []
    for _ in range(num_epochs // 2):
        factors = np.exp(rng.uniform(-1.0, 1.0, (2, len(base.links))))
        speeds = rng.uniform(0.5, 1.0, num_domains).tolist()
        domains = tuple(
            dataclasses.replace(domain, attainable_fraction=speed)
            for domain, speed in zip(base.domains, speeds, strict=True)
        )
        epochs += [dataclasses.replace(base.scaled(*factors), domains=domains)] * 2
    return HandWorld(epochs=tuple(epochs), topology=base, workload=job)


def speeds(*fractions):
    """The pair of domains at parts of their speed."""
    domains = tuple(
        dataclasses.replace(domain, attainable_fraction=fraction)
        for domain, fraction in zip(FREE_PAIR.domains, fractions, strict=True)
    )
    return dataclasses.replace(FREE_PAIR, domains=domains)


@pytest.mark.parametrize("seed", range(6))
def test_a_pool_holds_the_best_plan_of_every_network(seed):
    hand = drawn_world(seed)

    pool = candidate_pool(hand, 0)

    tables = tables_of(hand, 0, pool.plans)
    assert tables.static == 0
    assert tables.base_iteration_s[0] == search(hand.topology, hand.workload).makespan_s
    for epoch, topology in enumerate(hand.epochs):
        best_s = search(topology, hand.workload).makespan_s
        assert tables.iteration_s[epoch].min() <= best_s
    assert np.isfinite(tables.base_iteration_s).all()


def test_a_pool_is_the_same_twice_and_takes_in_what_it_is_given():
    hand = drawn_world(1)
    other = plan(2, 2, 2, 2, 2, 0, 0, 0, schedule="gpipe")

    pool = candidate_pool(hand, 0, max_plans=12)
    known, more = pool.plans[3], pool.joined({other: 4, pool.plans[3]: 9})

    assert pool == candidate_pool(hand, 0, max_plans=12)
    assert len(pool.plans) == len(set(pool.plans)) == 12
    assert more.plans == (*pool.plans, other)
    assert more.known_from == (*pool.known_from, 4)
    assert pool.joined({known: 0}).known_from[3] == 0


def test_a_larger_pool_only_helps_the_clairvoyant_and_holds_the_smaller_one():
    hand = drawn_world(2, num_domains=4)
    judge = SteadyJudge(hand.workload, 4)

    sizes = (6, 24, 96)
    pools = [candidate_pool(hand, 0, judge=judge, max_plans=size).plans for size in sizes]
    tables = [tables_of(hand, 0, plans, times=KnownTimes(judge)) for plans in pools]

    bounds = [total_s(one, clairvoyant(one)) for one in tables]
    assert bounds[0] >= bounds[1] >= bounds[2]
    for smaller, larger in pairwise(pools):
        assert smaller == larger[: len(smaller)]


def test_times_that_are_known_are_those_of_each_list_of_plans_alone():
    """Plans come in any order and again; each list of networks has its own times."""
    hand = drawn_world(5)
    judge = SteadyJudge(hand.workload, 3)
    pool = candidate_pool(hand, 0, judge=judge, max_plans=12).plans
    known, networks = KnownTimes(judge), list(hand.epochs)
    for name, asked in (("all", pool[:4]), ("two", pool[2:9]), ("all", pool[::-1]), ("two", pool)):
        on = networks if name == "all" else networks[:2]
        found = known.on_all(name, on, asked)
        assert found.tolist() == PlanTimes(judge, asked).on_all(on).tolist()
        assert found.shape == (len(on), len(asked))


def test_a_plan_is_known_from_the_first_epoch_whose_network_yields_it():
    """The left domain is the quick one in epochs 0 and 1 and at base figures, the right one in 2.

    To split layers is known from the even plan, and one network splits them 3 to 1, the other one
    1 to 3. In epoch 2 a search finds the right domain alone, under all schedules; it was known as a
    single domain, under the first. The mean of times wants 3 to 1 too; no network yields that under
    another schedule, so these are known in no epoch.
    """
    left, right = speeds(1.0, 0.01), speeds(0.01, 1.0)
    hand = HandWorld(epochs=(left, left, right), topology=left)
    deep = ("1f1b_2x", "1f1b_4x", "1f1b_8x", "gpipe")

    pool = candidate_pool(hand, 0, max_plans=1000)

    mean = search(mean_network(hand.epochs), hand.workload).plan
    assert str(mean.placement) == "0*3,1*1"
    names = [f"{one.placement} {one.schedule}" for one in pool.plans]
    assert dict(zip(names, pool.known_from, strict=True)) == {
        **{f"0*4 {name}": 0 for name in ("1f1b", *deep)},
        **{f"0*2,1*2 {name}": 0 for name in ("1f1b", *deep)},
        **{f"1*4 {name}": 2 for name in deep},
        **{f"0*3,1*1 {name}": 3 for name in deep},
        "0*3,1*1 1f1b": 0,
        "1*4 1f1b": 0,
        "0*1,1*3 1f1b": 2,
    }


@pytest.mark.parametrize("seed", range(4))
def test_when_a_plan_is_known_does_not_hang_on_later_networks(seed):
    whole = drawn_world(seed)
    half = dataclasses.replace(whole, epochs=whole.epochs[:4])

    since, before = (
        dict(zip(pool.plans, pool.known_from, strict=True))
        for pool in (candidate_pool(hand, 0, max_plans=10**6) for hand in (whole, half))
    )

    for epoch, topology in enumerate(half.epochs):
        best = search(topology, whole.workload).plan
        assert since[best] == before[best] <= epoch
    assert max(since.values()) <= whole.num_epochs


def test_networks_that_are_not_searched_have_the_orders_of_others_in_their_own_splits():
    hand = drawn_world(4, num_domains=4, num_epochs=12)

    every, some = (
        tables_of(hand, 0, candidate_pool(hand, 0, max_searched=most).plans) for most in (None, 2)
    )

    nearest = some.iteration_s.min(axis=1) / every.iteration_s.min(axis=1)
    assert (nearest[[0, 1, -2, -1]] == 1.0).all()
    assert (nearest >= 1.0).all()
    with pytest.raises(ValueError, match="max_searched"):
        candidate_pool(hand, 0, max_searched=0)


def test_networks_that_were_seen_are_searched_once():
    hand = drawn_world(3)

    distinct, epochs = distinct_networks(hand.epochs)

    assert distinct == [hand.epochs[0], hand.epochs[2], hand.epochs[4]]
    assert epochs.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_mean_network_takes_the_mean_of_times():
    """A byte takes 1/8 s and 1/2 s, so 5/16 s; a FLOP 1 s and 2 s."""
    second = slowed(0.5)
    slow = dataclasses.replace(
        second, links=world("AB", {"AB": (2.0, 1.0), "BA": (8.0, 0.0)}).links
    )

    mean = mean_network([FREE_PAIR, slow])

    assert mean.links[0].bandwidth_bytes_per_s == 16 / 5
    assert mean.links[0].latency_s == 0.5
    assert mean.domains[1].attainable_flops_per_s == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="one or more with as many links, got 2"):
        mean_network([FREE_PAIR, world("AB", {})])


def test_plans_are_chosen_that_are_best_over_some_stretch_then_the_next_best():
    """The first is best in epoch 0, the second in epoch 1, the third over both and near to reach.

    The fourth is second best nowhere but better than the fifth, which does not always work.
    """
    undone = -np.array([[5.0, 1.0, 4.0, 2.0, 1.5], [1.0, 5.0, 4.0, 2.0, -np.inf]])
    reach = np.array([[9.0, 9.0, 0.0, 9.0, 9.0]] * 2)

    assert choose_plans(undone, reach, 5).tolist() == [2, 0, 1, 3, 4]
    assert choose_plans(undone, reach, 2).tolist() == [2, 0]

"""Offers of a world whose sites come and go: the best plan of every set, with its moves."""

from dataclasses import replace

import numpy as np
import pytest
from bound_cases import site, sites
from spot_cases import stays

from agents.decision.training_job import TrainingJob
from agents.hi_ppo.spot.task import SpotTask
from agents.replanning.move_cost import checkpoint_bytes
from agents.replanning.searched_offers import OfferedWorlds, offers_of, search_site_sets
from agents.replanning.spot.clairvoyant import most_tokens
from agents.search.bound_search import search_bound
from agents.search.search import PlanRequest
from agents.trainers.plan_checks import domains_in_use
from agents.trainers.table import trainer_named
from des import Topology
from des.dynamics.site_law import SiteLaw, SpotLaw
from des.spot.batch import run_spot_batch
from des.spot.engine import run_spot
from des.world.lost_parts import with_domains

JOB = TrainingJob.of_tokens("llama2_7b", 8 * 4096, 4096, None)
WORLD = sites(site("A", 8), site("B", 8), replace(site("C", 8), gpu_price_usd_per_hour=3.6))
REQUEST = PlanRequest(topology=WORLD, job=JOB, trainer=trainer_named("megatron"))


class Always:
    """Asks for one offer."""

    def __init__(self, offer):
        self._offer = offer

    def choose(self, view):
        return np.full(view.held.shape, self._offer)


def law(names="AB"):
    """Stays of some sites, up for 2 h or so."""
    up, down = stays(3600.0, 7200.0), stays(600.0, 1800.0)
    return SpotLaw(sites=tuple(SiteLaw(name=name, up=up, down=down) for name in names))


@pytest.fixture(scope="module")
def plans():
    """The best plans, A and B coming and going."""
    return search_site_sets(REQUEST, law())


def test_each_set_of_sites_has_its_best_plan_and_each_plan_comes_once(plans):
    used = [frozenset(domains_in_use(one.plan)) for one in plans]

    assert len(set(used)) == len(used)
    for names in ("C", "AC", "BC", "ABC"):
        world = with_domains(WORLD, names)
        best = search_bound(replace(REQUEST, topology=world), is_best_alone=True).best.bound
        there = {WORLD.index_of[name] for name in names}
        steps_s = [one.step_s for one, own in zip(plans, used, strict=True) if own <= there]
        assert min(steps_s) == best.step_s


def test_offers_have_the_rates_needs_and_prices_of_their_plans(plans):
    offers = offers_of(plans, law(), restart_s=60.0)

    for place, one in enumerate(plans):
        assert offers.tokens_per_s[place] == JOB.tokens_per_step / one.step_s
        assert set(np.flatnonzero(offers.needs[place])) == set(domains_in_use(one.plan))
    dear = offers.needs[:, 2]
    assert offers.usd_per_s == pytest.approx(np.where(dear, 8 * 3.6 / 3600.0, 0.0))


def test_a_move_between_single_sites_takes_the_state_over_the_link_and_from_storage(plans):
    """State over 1.25 GB/s, then read at 1 GB/s by one server, then a restart of 60 s."""
    (single,) = (one for one in plans if set(domains_in_use(one.plan)) == {2})
    only = replace(single, step_s=1.0)
    there = search_site_sets(replace(REQUEST, topology=WORLD), law("BC"))
    (other,) = (one for one in there if set(domains_in_use(one.plan)) == {0})

    offers = offers_of((only, other), law(), restart_s=60.0)

    state = checkpoint_bytes(single.workload)
    assert offers.move_s[0, 1] == pytest.approx(60.0 + state / 1.25e9 + state / 1e9, rel=1e-6)
    assert offers.move_s[0, 0] == offers.move_s[2, 0] == pytest.approx(60.0 + state / 1e9)


def test_sites_that_no_links_join_take_the_state_from_storage_alone(plans):
    apart = Topology.of(WORLD.domains, [])
    plans_apart = search_site_sets(replace(REQUEST, topology=apart), law())
    offers = offers_of(plans_apart, law(), restart_s=60.0)

    state = checkpoint_bytes(plans[0].workload)
    assert offers.move_s == pytest.approx(np.full(offers.move_s.shape, 60.0 + state / 1e9))


def test_both_engines_run_the_world_of_a_seed_alike(plans):
    offers = offers_of(plans, law(), restart_s=60.0)
    worlds = OfferedWorlds(
        offers=offers, law=law().over(list(WORLD.index_of)), num_ticks=600, tick_s=300.0
    )
    world, whole = worlds(7)

    class Fastest:
        """Asks for the fastest offer that is up."""

        def choose(self, view):
            up = np.asarray((~offers.needs | view.up[:, np.newaxis]).all(axis=2))
            return np.where(up, offers.tokens_per_s, 0.0).argmax(axis=1)

    assert [one.name for one in whole.sites] == ["A", "B", "C"]
    assert world.course.up[:, 2].all()
    history = run_spot(world, Fastest(), 7)
    assert [history] == run_spot_batch([world], Fastest(), [7])
    assert history.tokens > 0
    assert (worlds(7)[0].course.up == world.course.up).all()
    assert (worlds(8)[0].course.up != world.course.up).any()


def test_the_environment_plays_a_world_of_ones_own(plans):
    """Rewards add up to the tokens less a clairvoyant's, in hours at the best rate."""
    offers = offers_of(plans, law(), restart_s=60.0)
    worlds = OfferedWorlds(
        offers=offers, law=law().over(list(WORLD.index_of)), num_ticks=200, tick_s=300.0
    )
    task = SpotTask(make_world=worlds)
    task.reset(7)
    total, is_over = 0.0, False
    (stays,) = np.flatnonzero((offers.needs == [False, False, True]).all(axis=1))
    while not is_over:
        _, reward, is_over = task.step([int(stays)])
        total += reward

    world, _ = worlds(7)
    history = run_spot(world, Always(int(stays)), 7)
    hour = offers.tokens_per_s.max() * 3600.0
    kept = world.offers.kept_tokens_per_s.max() * 3600.0
    assert total * hour == pytest.approx(history.tokens - most_tokens(world), abs=0.05 * kept)


def test_more_sites_than_can_be_searched_are_refused():
    many = SpotLaw(sites=tuple(replace(law().sites[0], name=f"s{at}") for at in range(9)))

    with pytest.raises(ValueError, match=r"availability\.sites: must be at most 8.*got 9"):
        search_site_sets(REQUEST, many)

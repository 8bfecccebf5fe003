"""Sites that come and go under watch: how long they have been there, and moves to them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from spot_cases import stays
from watched_job import START_S, WORLD, after, seen, used_sites, watch

from agents.replanning.lasting_sites import lasting_sites
from agents.replanning.observed_world import ObservedWorld
from des.dynamics.site_law import SiteLaw, SpotLaw
from des.spot.stay_kernels import stay_survival

UP = stays(900.0, 14_400.0)
"""Half of the stays last about a quarter of an hour, the others about four hours."""


def going(*names):
    """The world of the watched job, some of whose sites come and go."""
    sites = tuple(SiteLaw(name=name, up=UP, down=UP) for name in names)
    return replace(WORLD, availability=SpotLaw(sites=sites))


def test_a_site_is_as_old_as_its_stay_has_been_seen():
    world = ObservedWorld(base=going("A"), time_constant_s=300.0)
    for minute, value in ((0, 1), (10, 1), (20, 0), (30, 1), (40, 1)):
        world.take(seen(minute, "A", "is_there", value))
    world.take(seen(41, "B", "utilisation", 0.5))

    now_s = START_S + 60.0 * 50
    assert world.age_s("A", now_s) == 20 * 60.0
    assert world.age_s("B", now_s) == 50 * 60.0  # there since the watch began
    again = replace(world).with_plain(json.loads(json.dumps(world.plain())))
    assert again.age_s("A", now_s) == 20 * 60.0


def test_the_chance_to_last_is_that_of_the_law_given_the_age():
    world = ObservedWorld(base=going("A", "B"), time_constant_s=300.0)
    world.take(seen(0, "A", "is_there", 1))
    world.take(seen(30, "B", "is_there", 0))
    world.take(seen(40, "B", "is_there", 1))
    figures = np.array(UP.figures)

    def lasts(age_s, length_s):
        return stay_survival(figures, age_s + length_s) / stay_survival(figures, age_s)

    now_s = START_S + 3600.0
    chance = lasting_sites(world, {"A", "B", "C"}, now_s)
    assert chance(1800.0) == pytest.approx(lasts(3600.0, 1800.0) * lasts(1200.0, 1800.0))
    assert lasting_sites(world, {"A"}, now_s)(0.0) == 1.0
    assert lasting_sites(world, {"C"}, now_s) is None
    assert lasting_sites(ObservedWorld(base=WORLD, time_constant_s=1.0), {"A"}, now_s) is None


def test_a_site_that_is_just_back_is_not_moved_to_until_it_has_lasted():
    """The plan's site loses half of its time when the others have been back for a minute."""
    found = {}
    for goes in (True, False):
        watching = watch(restart_s=600.0)
        (own,) = used_sites(after(watching, 0).plan)
        others = [one.name for one in WORLD.domains if one.name != own]
        if goes:
            watching.world = replace(watching.world, base=going(*others))
        after(watching, 1, *((name, "is_there", 0) for name in others))
        back = [(name, "is_there", 1) for name in others]
        found[goes] = [after(watching, 11, *back, (own, "utilisation", 0.5))]
        found[goes].append(after(watching, 900))

    assert [one.action for one in found[True]] == ["stay", "move"]
    assert "which it does with a chance of 0." in found[True][0].why
    assert found[False][0].action == "move"

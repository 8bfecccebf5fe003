"""Shares of replicas: counts of microbatches, even or given."""

import pytest
from strategies import free_world, plan, unit_workload

from des import Placement, Plan
from des.plan.shares import parse_counts


def test_shares_of_replicas_may_be_uneven():
    first, second = plan(0).placement, plan(1).placement
    two = Plan(placement=first, replicas=(second,), shares=(6, 1))

    assert two.microbatches_of_replicas(7) == (6, 1)
    two.check_against(free_world(2), unit_workload([(1, 1)], num_microbatches=7))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((7,), "shares must be a tuple of one number of microbatches for each of 2 replicas, or"),
        ([3, 4], r"shares must be a tuple of .*; got \[3, 4\]"),
        ((7, 0), "share of replica 1 must be a whole number from 1 to 100000, got 0"),
        ((True, 6), "share of replica 0 must be a whole number from 1 to 100000, got True"),
    ],
)
def test_a_share_is_a_count_for_each_replica(given, message):
    with pytest.raises(ValueError, match=message):
        Plan(placement=plan(0).placement, replicas=(plan(1).placement,), shares=given)


def test_shares_add_up_to_the_microbatches():
    one, other = (Placement(domain_of_layer=(domain,)) for domain in range(2))
    chosen = Plan(placement=one, replicas=(other,), shares=(2, 1))

    with pytest.raises(ValueError, match=r"shares must add up to the 2 microbatches .*, got 3"):
        chosen.check_against(free_world(2), unit_workload([(1, 1)], num_microbatches=2))


def test_written_shares_are_counts():
    assert parse_counts(" 20,12", "shares") == (20, 12)
    with pytest.raises(ValueError, match=r"each item must be a number of microbatches, .* got 'x'"):
        parse_counts("20,x", "shares")

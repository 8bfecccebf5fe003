"""Cases of the sampler that a policy chooses."""

from collections import Counter

import pytest
from sampled_cases import SHIPPED, SMALL, STEADY_SHIPPED, WORKLOAD, policy_of
from strategies import plan

from calibration.cases.case import PlacementCase
from calibration.cases.case_key import case_digest
from calibration.cases.sampler import Sampler, sample_cases, sampling_purpose
from calibration.cases.settings import PolicyPlans, Regime
from calibration.cases.worlds import snapshot
from des import Placement


@pytest.mark.parametrize(("fraction", "expected"), [(0.25, 8), (0.5, 16), (1.0, 32)])
def test_a_fraction_of_the_cases_is_the_policys(fraction, expected):
    chosen = (0, 0, 1, 1, 2, 2)
    sampler = Sampler(
        topology=SHIPPED,
        family=SMALL,
        policy=policy_of(chosen),
        policy_fraction=fraction,
    )
    samples = [sampler.draw(position) for position in range(32)]
    own = [sample.case for sample in samples if sample.source == "policy"]

    assert len(own) == expected
    for case in own:
        assert case.plan.placement == Placement(domain_of_layer=chosen)
        assert case.plan.schedule == "zb_h1"
        assert case.workload == WORKLOAD
    assert len({case_digest(case) for case in own}) == expected  # on links of their own


def test_plans_come_by_their_weights():
    """Of 32 cases, three quarters are of the plan with three times the weight."""
    often, seldom = (0, 0, 1, 1, 2, 2), (2, 2, 2, 0, 0, 0)
    sampled = sample_cases(
        SHIPPED,
        SMALL,
        32,
        seed=0,
        regime=Regime(),
        policy=policy_of(seldom, often, weights=(5.0, 15.0)),
        policy_fraction=1.0,
    )

    placements = Counter(case.plan.placement.domain_of_layer for case in sampled)
    assert placements == {often: 24, seldom: 8}


def test_a_policy_that_does_one_thing_in_a_steady_world_has_it_for_one_purpose():
    """For the other purpose its places are filled from the strata, and say so."""
    policy = policy_of((0, 0, 1, 1, 2, 2))
    topology = snapshot(STEADY_SHIPPED, 0)
    only = PlacementCase(topology=topology, workload=WORKLOAD, plan=policy.plans[0])
    for purpose in ("fit", "check"):
        sampler = Sampler(
            topology=topology, family=SMALL, purpose=purpose, policy=policy, policy_fraction=1.0
        )
        sample = sampler.draw(0)
        assert sampling_purpose(sample.case) == purpose
        if purpose == sampling_purpose(only):
            assert sample.source == "policy"
            assert case_digest(sample.case) == case_digest(only)
        else:
            assert sample.source == "strata"


@pytest.mark.parametrize("weights", [(), (1.0,), (1.0, 0.0), (1.0, float("nan"))])
def test_bad_weights_are_refused(weights):
    with pytest.raises(ValueError, match="policy plans: weights must"):
        PolicyPlans(workload=WORKLOAD, plans=(plan(0, 1), plan(1, 0)), weights=weights)

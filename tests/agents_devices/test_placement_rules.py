"""Rules of placement on one server, compared."""

import pytest
from device_servers import cube_mesh, server_of_pairs, servers
from hypothesis import given
from hypothesis import strategies as st

from agents.devices.placement_rules import RulesCase, compare_rules


def test_rules_on_a_cube_mesh_by_hand():
    """First fit takes 0-2-3-5 with 1+2+1 NVLinks; 0-2-3 and 6 have 5, 4-5-6-7 8."""
    case = RulesCase(server=cube_mesh(), num_gpus=3, free=(0, 1, 5, 6, 7))
    found = {each.rule: each for each in compare_rules(case, seed=0, num_draws=20)}

    assert list(found) == ["exact", "exact_time", "greedy", "first_fit", "random"]
    assert (found["exact"].gpus, found["exact"].nvlinks) == ((5, 6, 7), 5)
    assert (found["first_fit"].gpus, found["first_fit"].nvlinks) == ((0, 1, 5), 3)
    assert found["random"].gpus is None
    assert found["random"].nvlinks < 5


def test_random_placements_are_those_of_the_seed():
    case = RulesCase(server=cube_mesh(), num_gpus=4)

    one, same, other = (compare_rules(case, seed=seed, num_draws=10)[-1] for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_more_gpus_than_sets_are_looked_at_have_no_exact_rule():
    server = server_of_pairs(20, lambda one, other: "NV4" if one // 4 == other // 4 else "SYS")
    found = compare_rules(RulesCase(server=server, num_gpus=4), seed=0, num_draws=2)

    assert [each.rule for each in found] == ["greedy", "first_fit", "random"]
    large = compare_rules(RulesCase(server=server, num_gpus=17), seed=0, num_draws=1)
    assert {each.all_reduce_s for each in large} == {None}


@given(server=servers(), draw=st.data())
def test_no_rule_has_more_nvlinks_or_is_faster(server, draw):
    num_gpus = draw.draw(st.integers(1, server.num_gpus))
    found = compare_rules(RulesCase(server=server, num_gpus=num_gpus), seed=0, num_draws=3)

    exact, fastest, *others = found
    for each in others:
        assert exact.nvlinks >= each.nvlinks
        assert fastest.all_reduce_s <= each.all_reduce_s * (1 + 1e-12)


def test_draws_must_be_at_least_one():
    with pytest.raises(ValueError, match="num_draws must be a whole number from 1"):
        compare_rules(RulesCase(server=cube_mesh(), num_gpus=1), seed=0, num_draws=0)

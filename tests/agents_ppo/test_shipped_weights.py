"""Weights that come with the package, against the hashes that the page gives."""

from pathlib import Path

import pytest

from agents.hi_ppo.moves.move_policy import MovePolicy
from agents.hi_ppo.moves.move_rules import WHOLE_RULES
from agents.hi_ppo.policies import digest_of
from agents.ppo.shipped_weights import shipped_weights, shipped_weights_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dev" / "weights.md"


@pytest.mark.parametrize(("kind", "count"), [("hi_ppo", 5), ("moves", 3), ("local", 3)])
def test_hashes_on_the_page_are_those_of_the_files(kind, count):
    page = PAGE.read_text("utf-8")
    files = shipped_weights(kind)

    assert files == [shipped_weights_of(kind, seed) for seed in range(count)]
    for path in files:
        assert f"| `{path.name}` | `{digest_of(path)}` |" in page


def test_a_seed_that_is_not_shipped_is_refused_with_those_that_are():
    message = "shipped weights of moves: seed must be one of 0, 1, 2; got 7"
    with pytest.raises(ValueError, match=message):
        shipped_weights_of("moves", 7)


def test_policies_for_moves_among_all_families_know_all_six_levels():
    for path in shipped_weights("moves"):
        assert MovePolicy.load(path).rule_set == WHOLE_RULES

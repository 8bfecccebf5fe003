"""The frozen benchmark of sites that come and go, and scores on it."""

import json
import sys

import numpy as np
import pytest

from agents.hi_ppo.spot.task import MOST_OFFERS
from agents.replanning.spot.clairvoyant import most_tokens
from des.base.command import UsageError
from des.spot.engine import run_spot
from scenarios.score import main
from scenarios.study.spot_scores import (
    Split,
    benchmark,
    digest,
    frozen_cases,
    policy_of_name,
    rule,
    score,
)

FEW = Split(first_seed=40, num_worlds=2, thinned=2.0, sha256="")
FEW = FEW.model_copy(update={"sha256": digest([case.world for case in FEW.cases])})


class AllSites:
    """Asks for all sites whatever is seen."""

    def choose(self, view):
        """Return the last offer for each job."""
        return np.full(len(view.held), MOST_OFFERS - 1)


def all_sites(observations):
    """The same, from observations."""
    return np.full(len(observations), MOST_OFFERS - 1)


def too_few(observations):
    """One offer for all."""
    return all_sites(observations)[:1]


@pytest.mark.parametrize("name", benchmark().splits)
def test_worlds_are_those_on_record(name):
    """And no seed is in two splits."""
    splits = benchmark().splits
    own = splits[name]

    assert len(frozen_cases(own)) == own.num_worlds
    others = [one for other, one in splits.items() if other != name]
    assert all(
        own.first_seed + own.num_worlds <= one.first_seed
        or one.first_seed + one.num_worlds <= own.first_seed
        for one in others
    )


def test_other_worlds_are_refused():
    with pytest.raises(ValueError, match="must have the digest"):
        frozen_cases(FEW.model_copy(update={"sha256": "0" * 64}))


@pytest.mark.parametrize("name", ["hysteresis", "survival"])
def test_rules_score_as_recorded(name):
    """The cheap ones, on the split for choosing."""
    recorded = benchmark().baselines[name]

    found = score(rule(name, recorded.horizon_h), benchmark().split("validation"))

    assert found == recorded.on("validation")
    assert found[0] < 100.0


def test_a_users_function_decides(monkeypatch):
    """As in the engine to read, job by job."""
    monkeypatch.setitem(sys.modules, "my_policies", sys.modules[__name__])
    worlds = [case.world for case in FEW.cases]
    shares = [run_spot(one, AllSites(), 0).tokens / most_tokens(one) for one in worlds]

    mean, _ = score(policy_of_name("my_policies:all_sites"), FEW)

    assert mean == pytest.approx(100.0 * sum(shares) / len(shares), abs=0.006)
    assert 0.0 < mean < 100.0


def test_an_answer_of_another_size_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "my_policies", sys.modules[__name__])
    with pytest.raises(ValueError, match="my_policies:too_few: must return 2 whole numbers"):
        score(policy_of_name("my_policies:too_few"), FEW)


@pytest.mark.parametrize("name", ["no_such_module:choose", "json:no_such_function"])
def test_functions_that_are_not_there_are_refused(name):
    with pytest.raises(UsageError, match="must be a checkpoint or MODULE:FUNCTION"):
        policy_of_name(name)


def test_the_command_prints_what_is_on_record(capsys):
    assert main(["--json", "--splits", "test"]) == 0

    document = json.loads(capsys.readouterr().out)

    assert document["benchmark"] == "eastwest-spot-benchmark 1"
    recorded = {name: one.on("test") for name, one in benchmark().baselines.items()}
    assert {name: tuple(own["test"]) for name, own in document["scores"].items()} == recorded


def test_an_unknown_split_is_refused(capsys):
    assert main(["--splits", "nowhere"]) == 2
    assert "--splits: must be some of train, validation, test" in capsys.readouterr().err

"""The move policy at work: what it sees epoch by epoch, and how it is kept."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from move_episodes import random_tables, some_plans

from agents.decision.situation import Preference
from agents.hi_ppo.moves.move_costs import MoveCosts
from agents.hi_ppo.moves.move_env import game_of
from agents.hi_ppo.moves.move_network import MoveNetwork
from agents.hi_ppo.moves.move_observation import observation_names
from agents.hi_ppo.moves.move_observer import MoveCandidates, MoveObservation, MoveObserver
from agents.hi_ppo.moves.move_policy import MoveArchitecture, MovePolicy, move_network_payload
from agents.hi_ppo.moves.move_rules import PIPELINE_RULES
from agents.hi_ppo.moves.move_training import choice_probabilities
from agents.ppo.checkpoint import CheckpointError
from agents.replanning.tables import EpisodeTables
from des import Plan
from des.compiled.many.layout import Real

RULES = PIPELINE_RULES.rules
index_of = PIPELINE_RULES.index_of


def candidates_of(tables: EpisodeTables, epoch: int, given_plans: list[int]) -> MoveCandidates:
    """What the coordinator would show of an epoch, in an order of its own."""
    place = {plan: at for at, plan in enumerate(tables.plans)}
    columns = np.array(given_plans)

    def changes(sources: Sequence[Plan]) -> tuple[Real, Real]:
        rows = np.ix_(np.array([place[plan] for plan in sources]), columns)
        return tables.move_s[epoch][rows], tables.moved_bytes[rows]

    return MoveCandidates(
        plans=tuple(tables.plans[at] for at in given_plans),
        iteration_s=tables.iteration_s[epoch, columns],
        base_iteration_s=tables.base_iteration_s[columns],
        cost_bytes=tables.cost_bytes[columns],
        changes=changes,
    )


@pytest.mark.parametrize(
    "preference", [Preference(), Preference(time=0.6, utilisation=0.2, communication=0.2)]
)
def test_the_observer_sees_what_training_sees(preference: Preference) -> None:
    """Along the path of a rule every observation is that of the state in the game."""
    tables = random_tables(7)
    game = game_of(MoveCosts.of(tables, preference))
    rule = RULES[index_of("order", 2.0)]
    choice = game.choice_of_rule[:, RULES.index(rule)]
    observer = MoveObserver(tables.epoch_s, preference)
    state, present = int(game.starts[0]), None
    rng = np.random.default_rng(0)
    order = list(range(tables.num_plans))
    for epoch in range(tables.num_epochs):
        seen = observer.observe(candidates_of(tables, epoch, order), present)
        assert seen.values == pytest.approx(game.observation[state], rel=1e-5, abs=1e-5)
        present = seen.plan_of(rule)
        assert present == tables.plans[game.chosen[state, choice[state]]]
        state = int(game.following[state, choice[state]])
        order = rng.permutation(tables.num_plans).tolist()


def test_candidates_may_become_more_but_not_fewer() -> None:
    """A plan that comes later is thought to have fared, over base, as the others did."""
    tables = random_tables(2, num_plans=6)
    observer = MoveObserver(tables.epoch_s)
    for epoch in range(4):
        observer.observe(candidates_of(tables, epoch, [0, 1, 2, 3]), None)
    more = observer.observe(candidates_of(tables, 4, [5, 0, 1, 4, 2, 3]), tables.plans[2])
    assert more.plans == tuple(tables.plans[at] for at in (0, 1, 2, 3, 5, 4))
    assert np.isfinite(more.values).all()
    with pytest.raises(ValueError, match="2 are missing"):
        observer.observe(candidates_of(tables, 5, [0, 1, 2, 3]), None)
    with pytest.raises(ValueError, match="present plan must be one of the candidates"):
        observer.observe(candidates_of(tables, 5, [0, 1, 2, 3, 4, 5]), some_plans(10)[8])
    observer.begin()
    observer.observe(candidates_of(tables, 0, [0, 1]), None)


def test_what_is_forgotten_need_not_be_given_and_what_rules_stand_on_stays() -> None:
    """What is forgotten may come back, as a new one."""
    tables = random_tables(3, num_plans=8)
    observer = MoveObserver(tables.epoch_s)
    assert observer.forget(tables.plans) == ()
    for epoch in range(6):
        seen = observer.observe(candidates_of(tables, epoch, list(range(8))), tables.plans[1])
    gone = observer.forget([*tables.plans[:4], some_plans(12)[11]])
    assert gone
    assert set(gone) < set(tables.plans[:4])
    left = [at for at in range(8) if tables.plans[at] not in gone]
    for epoch in range(6, 12):
        seen = observer.observe(candidates_of(tables, epoch, left[::-1]), tables.plans[left[0]])
        assert seen.plans == tuple(tables.plans[at] for at in left)
        assert np.isfinite(seen.values).all()
    back = observer.observe(candidates_of(tables, 12, list(range(8))), None)
    assert back.plans == (*(tables.plans[at] for at in left), *gone)


def test_forgetting_a_plan_that_is_never_taken_leaves_what_rules_take() -> None:
    """Seven times as dear as the dearest and moving with the rest, it is in no rule's way."""
    tables = random_tables(9, num_plans=6, leave=1.0, enter=0.0)
    rng = np.random.default_rng(1)
    common = np.exp(0.2 * rng.standard_normal((tables.num_epochs, 1)))
    iteration_s = tables.base_iteration_s * common
    base_s = tables.base_iteration_s.copy()
    base_s[5] *= 7.0
    iteration_s[:, 5] *= 7.0
    tables = dataclasses.replace(tables, iteration_s=iteration_s, base_iteration_s=base_s)
    observers = [MoveObserver(tables.epoch_s) for _ in range(2)]
    given = [list(range(6)), list(range(6))]
    for epoch in range(12):
        if epoch == 5:
            assert observers[1].forget([tables.plans[5]]) == (tables.plans[5],)
            given[1] = list(range(5))
        seen = [
            one.observe(candidates_of(tables, epoch, some), tables.plans[0])
            for one, some in zip(observers, given, strict=True)
        ]
        assert seen[0].targets.tolist() == seen[1].targets.tolist()


def test_a_candidate_is_given_once() -> None:
    tables = random_tables(2, num_plans=3)
    candidates = candidates_of(tables, 0, [0, 1, 2])
    again = Plan(placement=tables.plans[0].placement, schedule=tables.plans[0].schedule)
    twice = dataclasses.replace(candidates, plans=(tables.plans[0], tables.plans[1], again))
    with pytest.raises(ValueError, match="each plan once"):
        MoveObserver(10).observe(twice, None)
    observer = MoveObserver(10)
    observer.observe(candidates, None)
    with pytest.raises(ValueError, match="each plan once"):
        observer.observe(twice, None)


def test_a_policy_comes_back_from_its_payload_and_refuses_what_is_none(tmp_path: Path) -> None:
    network = MoveNetwork(MoveArchitecture(), torch.Generator().manual_seed(0))
    game = game_of(MoveCosts.of(random_tables(5)))
    policy = MovePolicy(network=network)
    policy.save(tmp_path / "moves.safetensors")
    again = MovePolicy.load(tmp_path / "moves.safetensors")
    both = (MoveNetwork.of(again.network), network)
    probabilities = [choice_probabilities(one, game).tolist() for one in both]
    assert probabilities[0] == probabilities[1]
    with pytest.raises(CheckpointError, match="must be a dict"):
        MovePolicy.from_payload(None)
    payload = move_network_payload(network)
    with pytest.raises(CheckpointError, match="observation must be what this version has"):
        MovePolicy.from_payload({**payload, "observation": ["nothing"]})
    with pytest.raises(CheckpointError, match="parameters of these sizes"):
        MovePolicy.from_payload({**payload, "hidden_sizes": (3,)})


def test_the_first_policy_prefers_its_start_rule_and_nan_is_refused() -> None:
    network = MoveNetwork(MoveArchitecture(start_horizon_epochs=4.0), torch.Generator())
    policy = MovePolicy(network=network)
    observation = MoveObservation(
        values=np.zeros(len(observation_names(PIPELINE_RULES)), dtype=np.float32),
        targets=np.arange(len(RULES)),
        plans=(),
    )
    assert RULES.index(policy.choose(observation)) == index_of("order", 4.0)
    broken = dataclasses.replace(observation, values=np.full_like(observation.values, np.nan))
    with pytest.raises(ValueError, match="finite numbers"):
        policy.choose(broken)


def test_before_any_plan_is_in_force_every_policy_takes_the_same_rule() -> None:
    """It leaves the plan of base figures where 16 epochs pay for the way back."""
    tables = random_tables(11)
    observer = MoveObserver(tables.epoch_s)
    given = candidates_of(tables, 12, list(range(tables.num_plans)))
    network = MoveNetwork(MoveArchitecture(start_horizon_epochs=1.0), torch.Generator())
    policy = MovePolicy(network=network)
    first = observer.observe(given, None)
    second = observer.observe(given, tables.plans[tables.static])

    costs = tables.move_s[12, tables.static] + 160.0 * tables.iteration_s[12]
    assert policy.choose(first) == RULES[index_of("order", 16.0)]
    assert first.plan_of(RULES[index_of("order", 16.0)]) == tables.plans[int(costs.argmin())]
    assert policy.choose(second).horizon_epochs == 1.0

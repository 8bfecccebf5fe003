"""The policy and its training: equal bytes, checkpoints, invariances, and decisions that fit."""

from dataclasses import asdict, astuple, replace

import numpy as np
import pytest
import torch
from gpu_numbers import renumbered
from local_reference import seconds_per_sequence
from test_local_options import case_of

from agents.hi_ppo.local.bound_plans import exhaustive
from agents.hi_ppo.local.decide import LocalAgent, Ranked, SharedSetting, proposed
from agents.hi_ppo.local.draws import draw_case
from agents.hi_ppo.local.features import (
    observe,
)
from agents.hi_ppo.local.options import options_of
from agents.hi_ppo.local.policy import LocalArchitecture, option_scores, save_policy
from agents.hi_ppo.local.rules import least_estimate
from agents.hi_ppo.local.shipped import shipped_local
from agents.hi_ppo.local.training import LocalReport, LocalTrainer, LocalTraining
from agents.hi_ppo.local.training_policy import LocalPolicy
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from agents.ppo.trained_policy import tensors_of
from des import InfeasiblePlacementError

SHORT = LocalTraining(num_cases=12, num_server_cases=4, num_updates=3, cases_per_update=8)


def trained(trainer: LocalTrainer) -> list[LocalReport]:
    """Reports of all updates of a training."""
    return [trainer.step() for _ in range(trainer.config.num_updates)]


def fresh_policy(seed: int = 0, **changes: object) -> LocalPolicy:
    return LocalPolicy(LocalArchitecture(**changes), torch.Generator().manual_seed(seed))


def drawn_cases(count: int, stream: int) -> list:
    rng = np.random.default_rng([stream, 7])
    return [draw_case(rng) for _ in range(count)]


def test_two_short_trainings_write_the_same_bytes(tmp_path):
    """Cases, weights, tries and order all come from the seed; nothing global is drawn from."""
    rows, files = [], []
    for name in ("one", "other"):
        torch.manual_seed(len(name))  # must not matter
        trainer = LocalTrainer(SHORT)
        rows.append(trained(trainer))
        files.append(tmp_path / name)
        save_policy(files[-1], trainer.policy, asdict(SHORT))

    assert rows[0] == rows[1]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_training_that_is_continued_ends_with_the_same_weights(tmp_path):
    whole, begun, continued = (LocalTrainer(SHORT) for _ in range(3))
    expected = trained(whole)
    begun.step()
    save_checkpoint(tmp_path / "training.safetensors", begun.state())
    continued.load_state(
        load_checkpoint(tmp_path / "training.safetensors"), source=tmp_path / "training.safetensors"
    )

    assert [continued.step() for _ in range(SHORT.num_updates - 1)] == expected[1:]
    for name, tensor in whole.policy.state_dict().items():
        assert torch.equal(tensor, continued.policy.state_dict()[name]), name
    other = LocalTrainer(replace(SHORT, seed=1))
    with pytest.raises(CheckpointError, match="training must be"):
        other.load_state(begun.state(), source=tmp_path / "training.safetensors")


def test_another_seed_trains_another_policy():
    policies = [LocalTrainer(replace(SHORT, seed=seed)).policy for seed in (0, 1)]

    assert not torch.equal(policies[0].inner.weight, policies[1].inner.weight)


@pytest.mark.parametrize("sees_estimate", [True, False])
def test_training_comes_close_to_the_best_plans(sees_estimate):
    """A policy that points anywhere is 40 % off and more; a little training leaves a few."""
    training = LocalTraining(
        num_cases=128,
        num_server_cases=16,
        num_updates=20,
        cases_per_update=32,
        sees_estimate=sees_estimate,
    )
    trainer = LocalTrainer(training)
    cases = drawn_cases(24, stream=1)

    def mean_gap() -> float:
        agent = LocalAgent(policy=trainer.policy, num_proposals=1)
        gaps = [
            agent.decide(case).seconds_per_sequence / exhaustive(case).seconds_per_sequence - 1.0
            for case in cases
        ]
        return float(np.mean(gaps))

    before = mean_gap()
    reports = trained(trainer)
    assert mean_gap() < (0.01 if sees_estimate else 0.1) < 0.3 < before
    assert reports[-1].mean_reward > reports[0].mean_reward + 0.2
    assert reports[-1].entropy < 0.5 * reports[0].entropy


def test_groups_of_one_learn_from_the_value():
    training = replace(SHORT, group_size=1, num_updates=2)

    assert all(np.isfinite(astuple(one)).all() for one in trained(LocalTrainer(training)))


@pytest.mark.parametrize("field", ["context", "options"])
def test_observations_that_are_not_finite_are_refused(field):
    case = drawn_cases(1, stream=3)[0]
    seen = observe(case, options_of(case))
    spoilt = getattr(seen, field).copy()
    spoilt[0] = np.nan

    with pytest.raises(ValueError, match=f"local policy: {field} must be finite"):
        option_scores(fresh_policy(), replace(seen, **{field: spoilt}))


def test_observations_of_another_shape_are_refused():
    case = drawn_cases(1, stream=3)[0]
    seen = observe(case, options_of(case))

    with pytest.raises(ValueError, match="context must be finite and of shape"):
        option_scores(fresh_policy(), replace(seen, context=seen.context[1:]))


@pytest.mark.parametrize("seed", range(6))
def test_scores_do_not_depend_on_the_numbers_of_the_gpus(seed):
    case = drawn_cases(1, stream=10 + seed)[0]
    order = np.random.default_rng(seed).permutation(8).tolist()
    other = replace(case, gpus=renumbered(case.gpus, order))
    policy = fresh_policy(seed)

    scores = [option_scores(policy, observe(each, options_of(each))) for each in (case, other)]
    np.testing.assert_array_equal(*scores)


def test_scores_are_those_of_the_network():
    """They are reckoned outside torch; sums of floats are rounded in another order."""
    policy = shipped_local(1).policy
    network = LocalPolicy(policy.architecture, None)
    network.load_state_dict(tensors_of(policy.numbers))
    for case in drawn_cases(5, stream=5):
        seen = observe(case, options_of(case))
        context, options = (torch.from_numpy(each)[None] for each in (seen.context, seen.options))
        with torch.no_grad():
            expected = network(context, options)[0][0].numpy()

        np.testing.assert_allclose(option_scores(policy, seen), expected, rtol=1e-4, atol=1e-4)


def test_scores_follow_the_order_of_the_options():
    case = drawn_cases(1, stream=4)[0]
    seen = observe(case, options_of(case))
    order = np.random.default_rng(0).permutation(len(seen.options))
    policy = fresh_policy()

    np.testing.assert_allclose(
        option_scores(policy, replace(seen, options=seen.options[order])),
        option_scores(policy, seen)[order],
        rtol=0,
        atol=1e-6,
    )


@pytest.mark.parametrize("seed", range(10))
def test_decisions_fit_whatever_the_policy(seed):
    """An untrained policy points anywhere among what fits; the estimate is that of des."""
    case = drawn_cases(1, stream=30 + seed)[0]
    decision = LocalAgent(policy=fresh_policy(seed), num_proposals=2).decide(case)

    assert decision.plan.option in options_of(case).rows.options
    assert len(set(decision.binding)) == decision.parallelism.num_gpus
    assert set(decision.binding) <= set(case.gpus.free)
    found = seconds_per_sequence(case, decision.plan.option, decision.binding)
    assert decision.seconds_per_sequence == pytest.approx(found, rel=1e-12)
    assert decision.response_s > 0.0


@pytest.mark.parametrize("seed", range(4))
def test_all_proposals_leave_the_binding_alone_to_differ(seed):
    """With every option bound, what is left to the best plan is what quick bindings miss."""
    case = drawn_cases(1, stream=50 + seed)[0]
    decision = LocalAgent(policy=fresh_policy(), num_proposals=1000).decide(case)

    best_s = exhaustive(case).seconds_per_sequence
    assert best_s * (1 - 1e-12) <= decision.seconds_per_sequence <= 1.02 * best_s


@pytest.mark.parametrize("seed", range(8))
def test_half_of_the_proposals_are_those_of_least_estimate(seed):
    """So with twice as many no policy, however bad, makes a decision worse than theirs."""
    case = drawn_cases(1, stream=70 + seed)[0]
    estimated = least_estimate(case, options_of(case), num_proposals=4)
    decision = LocalAgent(policy=fresh_policy(seed), num_proposals=8).decide(case)

    assert decision.seconds_per_sequence <= estimated.seconds_per_sequence


def test_proposals_are_by_turns_and_each_once():
    """By hand: 4 and 0 of the policy and the estimate, then 2 and 4 again, then 1 and 3."""
    ranked = Ranked(
        options=None,
        bind=None,
        by_policy=np.array([4, 2, 1, 3, 0]),
        by_estimate=np.array([0, 4, 3, 2, 1]),
    )
    everyone = np.ones(5, dtype=bool)

    assert proposed(ranked, everyone, 1) == [4]
    assert proposed(ranked, everyone, 4) == [4, 0, 2, 1]
    assert proposed(ranked, everyone, 9) == [4, 0, 2, 1, 3]
    assert proposed(ranked, np.array([True, False, True, True, False]), 2) == [2, 0]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_shipped_agents_come_close_to_the_best_plans(seed):
    agent, cases = shipped_local(seed), drawn_cases(20, stream=90)

    gaps = [
        agent.decide(case).seconds_per_sequence / exhaustive(case).seconds_per_sequence - 1.0
        for case in cases
    ]
    assert max(gaps) < 0.02
    assert np.mean(gaps) < 0.002


def test_agents_that_are_not_shipped_are_refused():
    with pytest.raises(ValueError, match=r"seed must be one of 0, 1, 2.*; got 77"):
        shipped_local(77)


def test_alternatives_are_the_decisions_of_every_setting():
    case, agent = case_of(), LocalAgent(policy=fresh_policy())
    found = agent.alternatives(case)

    assert len(found) == 6
    for setting, decision in found.items():
        assert decision.setting == setting
        again = min(agent.menu(case, setting), key=lambda one: one.seconds_per_sequence)
        assert (again.plan, again.setting) == (decision.plan, setting)


def test_a_setting_of_which_nothing_fits_is_refused():
    setting = SharedSetting(microbatch_size=8, recomputation="full")

    with pytest.raises(
        InfeasiblePlacementError,
        match="domain here: no local plan with 8 sequences a microbatch, full recomputation fits",
    ):
        LocalAgent(policy=fresh_policy()).menu(case_of(), setting)


def test_too_many_layers_are_refused_with_what_is_missing():
    with pytest.raises(InfeasiblePlacementError, match=r"60\.0 GB too many"):
        LocalAgent(policy=fresh_policy()).decide(case_of(first_layer=0, num_layers=80))


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="num_proposals must be a whole number from 1"):
        LocalAgent(policy=fresh_policy(), num_proposals=0)
    with pytest.raises(
        ValueError, match="num_minibatches must be at most cases_per_update 1, got 2"
    ):
        LocalTraining(cases_per_update=1)
    with pytest.raises(ValueError, match="hidden_size must be a whole number from 1 to 4096"):
        LocalArchitecture(hidden_size=0)

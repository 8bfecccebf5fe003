"""Rollouts of one worker and of several."""

import dataclasses

import numpy as np
import numpy.typing as npt
import pytest
import torch

from agents.ppo.batch_step import BatchStep
from agents.ppo.networks import ActorCritic, NetworkArchitecture
from agents.ppo.normaliser import ObservationMoments
from agents.ppo.rollout import Experience, Rollout, experience_of
from agents.ppo.rollout_source import LocalRollouts, RolloutWorker


class Counter:
    """Two environments that count steps from 0 and begin again after 3; action 1 pays 10."""

    num_envs = 2
    observation_size = 1
    action_sizes = (2,)
    ordinal_starts = (None,)

    def __init__(self) -> None:
        self._count = 0
        self.is_closed = False

    def reset(self) -> npt.NDArray[np.float32]:
        self._count = 0
        return np.zeros((2, 1), dtype=np.float32)

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        self._count += 1
        reached = np.full((2, 1), self._count, dtype=np.float32)
        ended = np.full(2, self._count == 3)
        return BatchStep(
            observations=self.reset() if ended.all() else reached,
            final_observations=reached,
            rewards=(10 * actions[:, 0]).astype(np.float32),
            terminated=ended & [True, False],
            truncated=ended & [False, True],
            metrics={"count": reached[:, 0].astype(np.float64)},
        )

    def state(self) -> dict[str, object]:
        return {"count": self._count}

    def load_state(self, state: dict[str, object]) -> None:
        count = state["count"]
        assert isinstance(count, int)
        self._count = count

    def close(self) -> None:
        self.is_closed = True


def network() -> ActorCritic:
    """Trained on nothing, but with outputs that depend on what it sees."""
    architecture = NetworkArchitecture(
        observation_size=1, action_sizes=(2,), ordinal_starts=(None,)
    )
    generator = torch.Generator().manual_seed(0)
    result = ActorCritic(architecture, generator)
    result.normaliser.merge(ObservationMoments.of(torch.tensor([[0.0], [3.0]])))
    with torch.no_grad():
        for parameter in result.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return result


def counted(num_steps: int) -> Rollout:
    return RolloutWorker(Counter(), seed=0).collect(network(), num_steps)


def test_rollout_keeps_what_was_acted_on_and_how():
    rollout = counted(num_steps=5)

    acted_on = torch.tensor([0.0, 1, 2, 0, 1])
    assert torch.equal(rollout.inputs[:, 0], network().normaliser(acted_on.unsqueeze(1)))
    assert torch.equal(rollout.inputs[:, 0], rollout.inputs[:, 1])
    assert rollout.terminated.nonzero().tolist() == [[2, 0]]
    assert rollout.truncated.nonzero().tolist() == [[2, 1]]
    assert torch.equal(rollout.rewards, 10.0 * rollout.actions[..., 0])
    assert rollout.metrics == pytest.approx({"count": (1 + 2 + 3 + 1 + 2) / 5})
    policy, values = network()(rollout.inputs.flatten(0, 1))
    log_probs = policy.log_prob(rollout.actions.flatten(0, 1))
    torch.testing.assert_close(rollout.log_probs.flatten(), log_probs)
    torch.testing.assert_close(rollout.values.flatten(), values)
    assert rollout.num_decisions == 10


def test_next_values_are_of_what_a_step_reached_not_of_where_the_next_episode_begins():
    """After the cut at 3 the count is 0 again; a termination has nothing to value."""
    rollout = counted(num_steps=4)

    by_count = network().value(torch.arange(4.0).unsqueeze(1))
    torch.testing.assert_close(rollout.next_values[:, 1], by_count[[1, 2, 3, 1]])
    torch.testing.assert_close(rollout.next_values[[0, 1, 3], 0], by_count[[1, 2, 1]])


def test_judge_values_a_cut_episode_at_its_end():
    experience = experience_of(
        [counted(num_steps=3)], discount=0.5, trace_decay=0.0, device=torch.device("cpu")
    )

    rollout = counted(num_steps=3)
    at_2, at_3 = network().value(torch.tensor([[2.0], [3.0]])).tolist()
    rewards = rollout.rewards[2].tolist()  # environment 0 terminates here, 1 is cut off
    expected = [rewards[0] - at_2, rewards[1] + 0.5 * at_3 - at_2]
    assert experience.advantages[-2:].tolist() == pytest.approx(expected, abs=1e-5)
    assert experience.returns[-2:].tolist() == pytest.approx([e + at_2 for e in expected], abs=1e-5)


def test_moments_are_those_of_the_observations_that_followed():
    moments = counted(num_steps=5).moments

    followed = np.repeat([1.0, 2, 0, 1, 2], 2)
    assert moments.count == 10
    assert moments.mean.item() == pytest.approx(followed.mean())
    assert moments.sum_of_squares.item() == pytest.approx(followed.var() * 10)


def test_rollouts_of_different_lengths_are_joined_in_order():
    rollouts = [counted(num_steps=3), counted(num_steps=5)]

    experience = experience_of(rollouts, discount=0.9, trace_decay=0.8, device=torch.device("cpu"))

    assert len(experience) == 2 * (3 + 5)
    for rollout, rows in zip(rollouts, (slice(0, 6), slice(6, 16)), strict=True):
        alone = experience_of([rollout], discount=0.9, trace_decay=0.8, device=torch.device("cpu"))
        for field in dataclasses.fields(Experience):
            part = getattr(experience, field.name)[rows]
            assert torch.equal(part, getattr(alone, field.name))
    taken = experience[torch.tensor([7, 2])]
    assert taken.returns.tolist() == experience.returns[[7, 2]].tolist()
    assert torch.equal(taken.actions, experience.actions[[7, 2]])


def content(rollout: Rollout) -> dict[str, object]:
    """Copies that the next rollout does not overwrite."""
    return {
        **{
            field.name: getattr(rollout, field.name).tolist()
            for field in dataclasses.fields(rollout)
            if field.name not in ("moments", "metrics")
        },
        "moments": [rollout.moments.count, rollout.moments.mean.tolist()],
        "metrics": dict(rollout.metrics),
    }


def test_worker_made_again_redoes_exactly_its_rollout():
    worker = RolloutWorker(Counter(), seed=0, worker=3)
    worker.collect(network(), 4)
    before = worker.state()
    lost = content(worker.collect(network(), 7))

    again = RolloutWorker(Counter(), seed=99)
    again.load_state(before)
    assert content(again.collect(network(), 7)) == lost
    again.load_state(before)
    assert content(again.collect(network(), 7)) == lost
    assert content(again.collect(network(), 7)) != lost


def test_worker_that_is_stopped_has_done_a_step_and_goes_on_from_there():
    """Rollouts of 1 and 4 steps are together one of 5."""
    whole = content(counted(num_steps=5))
    worker = RolloutWorker(Counter(), seed=0)
    first = content(worker.collect(network(), 5, should_stop=lambda: True))
    second = content(worker.collect(network(), 4, should_stop=lambda: False))

    for name in ("inputs", "actions", "log_probs", "rewards", "terminated", "truncated"):
        assert len(first[name]) == 1
        assert first[name] + second[name] == whole[name]
    assert first["metrics"] == {"count": 1.0}
    assert first["moments"] == [2, [1.0]]
    np.testing.assert_allclose(first["next_values"] + second["next_values"], whole["next_values"])


def test_stop_is_asked_after_every_step():
    answers = iter([False, False, True])

    rollout = RolloutWorker(Counter(), seed=0).collect(network(), 9, lambda: next(answers))

    assert rollout.rewards.shape == (3, 2)


def test_local_workers_act_as_each_would_alone_with_any_others():
    together = LocalRollouts([Counter(), Counter()], seed=5)
    rollouts = [content(rollout) for rollout in together.collect(network(), 6)]

    for number, found in enumerate(rollouts):
        alone = RolloutWorker(Counter(), seed=5, worker=number)
        assert content(alone.collect(network(), 6)) == found
    assert rollouts[0]["actions"] != rollouts[1]["actions"]
    assert (together.num_workers, together.num_envs) == (2, 4)
    assert [moments.count for moments in together.first_moments()] == [2, 2]


def test_local_rollouts_continue_from_their_state_and_refuse_that_of_others():
    source = LocalRollouts([Counter(), Counter()], seed=5)
    source.collect(network(), 2)
    state = source.state()
    expected = [content(rollout) for rollout in source.collect(network(), 3)]

    other = LocalRollouts([Counter(), Counter()], seed=0)
    other.load_state(state)
    assert [content(rollout) for rollout in other.collect(network(), 3)] == expected
    with pytest.raises(ValueError, match="state must be of 1 workers, got 2"):
        LocalRollouts([Counter()], seed=0).load_state(state)
    wide = {**state["workers"][0], "observations": torch.zeros(3, 1)}
    with pytest.raises(ValueError, match=r"observations must be finite, \(2, 1\)"):
        RolloutWorker(Counter(), seed=0).load_state(wide)
    with pytest.raises(ValueError, match="environments must be at least one"):
        LocalRollouts([], seed=0)


def test_closing_closes_every_environment():
    environments = [Counter(), Counter()]
    LocalRollouts(environments, seed=0).close()

    assert all(environment.is_closed for environment in environments)


def test_environment_that_changes_its_mind_about_sizes_is_refused():
    class Growing(Counter):
        def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
            wide = np.zeros((2, 2), dtype=np.float32)
            return dataclasses.replace(
                super().step(actions), observations=wide, final_observations=wide
            )

    with pytest.raises(ValueError, match=r"observations shaped \(2, 1\), got \(2, 2\)"):
        RolloutWorker(Growing(), seed=0).collect(network(), 1)


@pytest.mark.parametrize(
    ("field", "array", "complaint"),
    [
        ("observations", np.zeros(2, np.float32), r"shaped \(N, D\), got \(2,\)"),
        ("final_observations", np.zeros((2, 3), np.float32), r".*shaped \(2, 1\), got .*\(2, 3\)"),
        ("rewards", np.zeros(1, np.float32), r".*shaped \(2,\), got float32 shaped \(1,\)"),
        ("rewards", np.zeros(2), "float32 .*got float64"),
        ("rewards", np.array([1, np.nan], np.float32), "finite"),
        ("terminated", np.zeros(2, np.int64), "bool .*got int64"),
    ],
)
def test_batch_step_names_the_array_that_does_not_fit(field, array, complaint):
    step = Counter().step(np.zeros((2, 1), dtype=np.int64))

    with pytest.raises(ValueError, match=f"batch step: {field} must be {complaint}"):
        dataclasses.replace(step, **{field: array})

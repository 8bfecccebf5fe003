"""Other correction factors in the middle of a training, by the state of its rollouts alone."""

from collections.abc import Mapping
from typing import Any

from agents.flat.plain_corrections import from_plain, to_plain
from agents.ppo.rollout import RolloutSource
from des import Corrections


def recalibrate(rollouts: RolloutSource, corrections: Corrections) -> None:
    """Let all environments simulate with other factors from now on.

    They continue from their states, exactly as environments whose tasks have had these factors
    from the start: episodes, links and sampled numbers stay as they are, and observations do not
    depend on the factors. As the factors are a part of the state, they are in checkpoints, and an
    actor that takes the place of a lost one has them too. Factors that are in force already change
    nothing.

    Parameters
    ----------
    rollouts
        Their environments must be such as `agents.flat.batched_env.BatchedPlacementEnv`, with
        ``corrections`` in their state.
    corrections
        The new factors, of every worker.

    Raises
    ------
    ValueError
        If an environment has no factors in its state. That, and any error that simulating with the
        new factors leads to, leaves all workers where they were.
    """
    state = rollouts.state()
    plain = to_plain(corrections)
    workers = [
        {**worker, "environment": {**_environment(worker, number), "corrections": dict(plain)}}
        for number, worker in enumerate(_workers(state))
    ]
    rollouts.load_state({**state, "workers": workers})


def corrections_of(rollouts: RolloutSource) -> Corrections:
    """Return the factors that all environments simulate with now.

    Raises
    ------
    ValueError
        If an environment has no factors in its state, or others than that of worker 0.
    """
    first, *others = [
        from_plain(_environment(worker, number)["corrections"], f"environment of worker {number}")
        for number, worker in enumerate(_workers(rollouts.state()))
    ]
    for number, other in enumerate(others, start=1):
        if other != first:
            raise ValueError(
                f"recalibration: environment of worker {number} must have the corrections of "
                f"worker 0, {first}; got {other}"
            )
    return first


def _workers(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    workers: list[dict[str, Any]] = state["workers"]
    return workers


def _environment(worker: Mapping[str, Any], number: int) -> dict[str, Any]:
    """State of a worker's environment, which must have factors in it."""
    environment: dict[str, Any] = worker["environment"]
    if "corrections" not in environment:
        raise ValueError(
            f"recalibration: environment of worker {number} must have corrections in its state, "
            f"got {', '.join(environment) or 'nothing'}"
        )
    return environment

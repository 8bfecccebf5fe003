"""The placement task as Gymnasium environments, EastWest/Placement-v0: one, and many at once."""

import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from agents.flat.backends import DES, backend_named
from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.episode import Episode
from agents.flat.task import PlacementTask
from agents.flat.worlds import DrawnWorld, GivenWorld
from agents.ppo.batch_step import BatchStep, SteppedBatch
from des import (
    Topology,
    UniformLaw,
    Workload,
    build_workload,
    simulate,
)
from des.views.gantt import gantt_rgb

NUM_DOMAINS = 3
NUM_LAYERS = 96
TASK_PROFILE = "llama_70b"
BANDWIDTH_FLUCTUATION = 0.3
LATENCY_JITTER = 0.2
"""Defaults of the environment."""


def make_task(
    num_domains: int = NUM_DOMAINS,
    num_layers: int = NUM_LAYERS,
    task_profile: str = TASK_PROFILE,
    bandwidth_fluctuation: float = BANDWIDTH_FLUCTUATION,
    *,
    topology: Topology | None = None,
    workload: Workload | None = None,
    backend: str = DES,
    backend_options: Mapping[str, object] | None = None,
    **settings: Any,
) -> PlacementTask:
    """Put a placement task together from the arguments of the environment.

    Parameters
    ----------
    num_domains, bandwidth_fluctuation
        World of this number of domains whose links are drawn for each episode and whose
        bandwidths move by up to that share per epoch. Left alone where ``topology`` is given.
    num_layers, task_profile
        A model preset divided into that many layers. Left alone where ``workload`` is given.
    topology, workload
        A given world and job instead.
    backend, backend_options
        Name of what judges the plans in place of the simulator, see `agents.flat.backends`, and its
        keyword arguments.
    settings
        Other fields of `agents.flat.task.PlacementTask`, each with its default there.

    Raises
    ------
    ValueError
        If arguments contradict each other or are out of range.
    """
    if topology is not None:
        _require_default("topology", "num_domains", num_domains, NUM_DOMAINS)
        fluctuation = bandwidth_fluctuation
        _require_default("topology", "bandwidth_fluctuation", fluctuation, BANDWIDTH_FLUCTUATION)
    judge = backend_named(backend, backend_options)
    if judge is not None:
        given = settings.get("simulator", simulate)
        _require_default(f"backend {backend}", "simulator", given, simulate)
    if workload is None:
        workload = build_workload(task_profile, num_layers=num_layers)
    else:
        _require_default("workload", "num_layers", num_layers, NUM_LAYERS)
        _require_default("workload", "task_profile", task_profile, TASK_PROFILE)
    law = UniformLaw(bandwidth_fluctuation=bandwidth_fluctuation, latency_jitter=LATENCY_JITTER)
    world = (
        DrawnWorld(num_domains=num_domains, dynamics=law)
        if topology is None
        else GivenWorld(topology=topology)
    )
    return PlacementTask(world=world, workload=workload, backend=judge, **settings)


def _require_default(given: str, name: str, value: object, default: object) -> None:
    if value != default:
        raise ValueError(
            f"environment: {name} must be left out where {given} is given, got {value!r}"
        )


class PlacementEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """Place all layers of a model on the domains, once per epoch of a moving network.

    See `make_task` for ``task_arguments``, `PlacementTask` for observation and reward and
    `agents.ppo.actions` for the meaning of an action. ``info`` holds every figure of the epoch, its
    unit in its name, under every backend those of `epoch_info`; ``render()`` returns
    the Gantt picture of the last iteration, if simulated.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 1}  # noqa: RUF012

    def __init__(self, *, render_mode: str | None = None, **task_arguments: Any) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(
                f"environment: render_mode must be rgb_array or None, got {render_mode!r}"
            )
        self.render_mode = render_mode
        self.task = make_task(**task_arguments)
        if self.task.backend is not None and render_mode is not None:
            raise ValueError(
                "environment: render_mode must be None where backend is "
                f"{task_arguments['backend']}, which measures no spans to draw; got {render_mode!r}"
            )
        self._episode = Episode(self.task)
        self.observation_space, self.action_space = placement_spaces(self.task)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; the same seed gives the same episodes from there on."""
        super().reset(seed=seed)
        observation = self._episode.begin(int(self.np_random.integers(2**63)))
        at_reset: dict[str, Any] = dict(self.task.baseline_metrics(self._episode.baseline))
        return observation, at_reset

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Run an epoch with the placement that the action stands for."""
        array = np.asarray(action)
        if array.dtype.kind not in "iu" or not self.action_space.contains(array.astype(np.int64)):
            raise ValueError(
                f"environment: action must lie in {reprlib.repr(self.action_space)}, "
                f"got {reprlib.repr(array.tolist())}"
            )
        placement = self.task.codec.decode(array.tolist())
        outcome = self._episode.step(placement)
        info: dict[str, Any] = {**outcome.metrics, **self._episode.last_info()}
        info["domain_of_layer"] = placement.domain_of_layer
        return outcome.observation, outcome.reward, False, outcome.truncated, info

    def render(self) -> np.ndarray | None:
        """Draw the last iteration; before the first step, that of the uniform plan."""
        if self.render_mode is None:
            return None
        return gantt_rgb(self._episode.last_result())


def placement_spaces(
    task: PlacementTask,
) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.MultiDiscrete]:
    """Return the spaces of one environment's observations and actions."""
    return (
        gymnasium.spaces.Box(0.0, 1.0, shape=(task.observation_size,), dtype=np.float32),
        gymnasium.spaces.MultiDiscrete(list(task.codec.sizes)),
    )


Observations = npt.NDArray[np.float32]
Actions = npt.NDArray[np.int64]
Infos = dict[str, Any]


class BatchVectorEnv(VectorEnv[Observations, Actions, npt.NDArray[Any]]):
    """A batch of N environments as Gymnasium's vector environment.

    An environment whose episode ends begins its next one in the same step: observations are then
    the first of the new episode, ``infos["final_obs"]`` and ``infos["final_info"]`` what the old
    one ended with. Infos are arrays (N,) with a mask each, every figure of the epoch by its name.

    Parameters
    ----------
    make_batch
        Makes the batch of a seed.
    num_envs
        Environments in the batch, N.
    observation_space, action_space
        Of one environment.
    num_seeds
        Seeds from 0 on of which one is drawn where ``reset`` is given none.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        make_batch: Callable[[int], SteppedBatch],
        num_envs: int,
        observation_space: gymnasium.spaces.Box,
        action_space: gymnasium.spaces.MultiDiscrete | gymnasium.spaces.Discrete,
        *,
        num_seeds: int,
    ) -> None:
        self._make_batch, self._num_seeds = make_batch, num_seeds
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = observation_space, action_space
        self.observation_space = batch_space(observation_space, num_envs)
        self.action_space = batch_space(action_space, num_envs)
        self._batch: SteppedBatch | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Begin the first episodes of a seed, or the next ones everywhere without a seed."""
        if options:
            raise ValueError(f"vector environment: options must be empty, got {options!r}")
        super().reset(seed=seed)
        if seed is not None or self._batch is None:
            self.close_extras()
            first = int(self.np_random.integers(self._num_seeds)) if seed is None else seed
            self._batch = self._make_batch(first)
        return self._batch.reset(), {}

    def step(
        self, actions: Actions
    ) -> tuple[
        Observations,
        npt.NDArray[np.float32],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        Infos,
    ]:
        """Apply actions (N, A)."""
        if self._batch is None:
            raise RuntimeError("vector environment: reset must be called first")
        step = self._batch.step(np.asarray(actions))
        return step.observations, step.rewards, step.terminated, step.truncated, infos_of(step)

    def close_extras(self, **_: Any) -> None:
        """End the workers, if any."""
        if self._batch is not None:
            self._batch.close()


class PlacementVectorEnv(BatchVectorEnv):
    """N placement environments stepped together: ``gymnasium.make_vec("EastWest/Placement-v0")``.

    Episodes are those of `BatchedPlacementEnv` with the seed of ``reset``; rewards are float32.

    Parameters
    ----------
    num_envs
        Environments in the batch, N.
    num_workers
        Threads that simulate, as `BatchedPlacementEnv` has them.
    task_arguments
        Those of `agents.flat.env.make_task`.
    """

    def __init__(self, num_envs: int = 1, *, num_workers: int = 1, **task_arguments: Any) -> None:
        self.task = task = make_task(**task_arguments)

        def make_batch(first: int) -> BatchedPlacementEnv:
            return BatchedPlacementEnv(task, num_envs=num_envs, seed=first, num_workers=num_workers)

        super().__init__(make_batch, num_envs, *placement_spaces(task), num_seeds=2**63)


def infos_of(step: BatchStep) -> Infos:
    """Figures of environments in the middle of an episode, and final ones of the others."""
    ended = step.terminated | step.truncated
    infos = _mask(step.metrics, ~ended)
    if ended.any():
        final_obs = np.full(len(ended), None, dtype=object)
        for row in np.flatnonzero(ended).tolist():
            final_obs[row] = step.final_observations[row]
        infos |= {"final_obs": final_obs, "final_info": _mask(step.metrics, ended)}
        infos |= {"_final_obs": ended, "_final_info": ended.copy()}
    return infos


def _mask(metrics: Mapping[str, npt.NDArray[np.float64]], mask: npt.NDArray[np.bool_]) -> Infos:
    """Figures by name, 0 outside the mask, each with the mask under ``_name``."""
    infos: Infos = {}
    for name, values in metrics.items():
        infos[name] = np.where(mask, values, 0.0)
        infos[f"_{name}"] = mask.copy()
    return infos

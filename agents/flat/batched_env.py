"""N placement episodes stepped together: arrays in, arrays out, on one or more threads."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from agents.flat.compiled_batch import CompiledBatch, is_compilable
from agents.flat.episode import EpisodeBatch, SeatState
from agents.flat.kernels.placements import first_out_of_range
from agents.flat.plain_corrections import from_plain, to_plain
from agents.flat.task import PlacementTask
from agents.flat.worlds import has_course
from agents.ppo.batch_step import BatchStep
from des import Corrections
from des.base.checks import MOST_ITEMS, require_count, require_seed
from des.dynamics.movement import LATEST_START_S

_MOST_EPISODES = 2**63


class _Batch(Protocol):
    """Environments side by side, in whatever way they are stepped."""

    @property
    def bytes_per_env(self) -> float | None:
        """Memory of an environment, None where it is not known. [bytes]"""

    def begin(self) -> npt.NDArray[np.float32]:
        """Begin the next episode in every environment."""

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        """Apply actions that are known to be within range."""

    def states(self) -> list[SeatState]:
        """Return the position of every environment: episode, epoch and last placement."""

    def load(self, states: Sequence[SeatState]) -> None:
        """Stand where the environments stood."""

    def close(self) -> None:
        """Give back what is held."""


class BatchedPlacementEnv:
    """N environments of one task; see `agents.ppo.batch_step.BatchStep` for what a step returns.

    Where the task leaves it to the engine of `des` and the schedule does not look at the pipeline,
    compiled code steps all environments together; else each is an `agents.flat.episode.Episode`.
    Both give the same to the last bit. Results are also the same for any ``num_workers``. Use it as
    a context manager, or call `close`.

    Parameters
    ----------
    task
        Task of every environment.
    num_envs
        Environments in the batch, N.
    seed
        Of everything random in the batch, within [0, 2**63).
    num_workers
        Threads that step compiled environments; episodes in Python take one.
    """

    def __init__(
        self, task: PlacementTask, *, num_envs: int, seed: int, num_workers: int = 1
    ) -> None:
        require_count("batched environment", "num_envs", num_envs, MOST_ITEMS)
        require_count("batched environment", "num_workers", num_workers, MOST_ITEMS)
        require_seed("batched environment", "seed", seed)
        self.task = task
        self.num_envs = num_envs
        self._seed, self._num_workers = seed, num_workers
        self.observation_size, self.action_sizes = task.observation_size, task.codec.sizes
        self.ordinal_starts = task.codec.ordinal_starts
        self._sizes = np.array(task.codec.sizes, dtype=np.int64)
        self._is_closed = False
        self._batch = self._new_batch(task)

    @property
    def bytes_per_env(self) -> float | None:
        """Memory of an environment between steps; None where it is an object of Python. [bytes]"""
        return self._batch.bytes_per_env

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin the next episode in every environment; first observations (N, D)."""
        self._require_open()
        return self._batch.begin()

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        """Apply actions (N, A)."""
        self._require_open()
        shape = (self.num_envs, len(self._sizes))
        if actions.shape != shape or actions.dtype.kind not in "iu":
            raise ValueError(
                f"batched environment: actions must be whole numbers shaped {shape}, got "
                f"{actions.dtype} shaped {actions.shape}"
            )
        whole = np.ascontiguousarray(actions, dtype=np.int64)
        place = first_out_of_range(whole, self._sizes)
        if place >= 0:
            row, component = divmod(int(place), len(self._sizes))
            raise ValueError(
                f"batched environment: actions[{row}, {component}] must be within "
                f"[0, {self._sizes[component]}), got {actions[row, component]}"
            )
        return self._batch.step(whole)

    def state(self) -> dict[str, object]:
        """Everything that `load_state` needs to continue from here, as plain content."""
        self._require_open()
        seats = [
            {
                "number": seat.number,
                "epoch": seat.epoch,
                "domain_of_layer": list(seat.domain_of_layer),
                **({"start_s": seat.start_s} if seat.start_s else {}),
            }
            for seat in self._batch.states()
        ]
        return {"seats": seats, "corrections": to_plain(self.task.corrections)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned, in a batch of the same task, seed and size.

        If the state is one under other correction factors, the batch continues under these, exactly
        as one whose task has had them from the start; `task` then is the one with these factors.
        Nothing random depends on them, nor do observations. Where a backend judges, its iterations
        are not corrected: other factors then change only what changes of placement cost.

        Raises
        ------
        ValueError
            If the state is not of such a batch. That, and any error that simulating with other
            factors leads to, leaves the batch as it was.
        """
        self._require_open()
        seats = self._seats_of(state)
        if "corrections" not in state:
            raise ValueError(
                f"batched environment: state must have corrections, got {', '.join(state)}"
            )
        corrections = from_plain(state["corrections"], "batched environment")
        if corrections == self.task.corrections:
            self._batch.load(seats)
        else:
            self._go_on_under(corrections, seats)

    def close(self) -> None:
        """End the threads, if any."""
        self._batch.close()
        self._is_closed = True

    def __enter__(self) -> "BatchedPlacementEnv":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("batched environment: is closed")

    def _new_batch(self, task: PlacementTask) -> _Batch:
        if is_compilable(task):
            return CompiledBatch(task, self.num_envs, self._seed, num_threads=self._num_workers)
        return EpisodeBatch(task, self.num_envs, self._seed)

    def _go_on_under(self, corrections: Corrections, seats: Sequence[SeatState]) -> None:
        """Put a batch under other factors in the place of the present one, once it stands."""
        task = replace(self.task, corrections=corrections)
        batch = self._new_batch(task)
        try:
            batch.load(seats)
        except BaseException:
            batch.close()
            raise
        self._batch.close()
        self.task, self._batch = task, batch

    def _seats_of(self, state: dict[str, Any]) -> list[SeatState]:
        """Return the checked positions of the environments in a state."""
        seats = [
            SeatState(
                seat["number"],
                seat["epoch"],
                tuple(seat["domain_of_layer"]),
                seat.get("start_s", 0.0),
            )
            for seat in state["seats"]
        ]
        if len(seats) != self.num_envs:
            raise ValueError(
                f"batched environment: state must be of {self.num_envs} environments, "
                f"got {len(seats)}"
            )
        for seat in seats:
            self._check(seat)
        return seats

    def _check(self, seat: SeatState) -> None:
        """Refuse what cannot be of this task."""
        num_layers, num_domains = self.task.workload.num_layers, self.task.world.num_domains
        placed = seat.domain_of_layer
        if len(placed) != num_layers or not all(_is_within(one, num_domains) for one in placed):
            raise ValueError(
                f"batched environment: state must hold {num_layers} layers within "
                f"{num_domains} domains, got {placed!r}"
            )
        is_begun = _is_within(seat.number, _MOST_EPISODES)
        if not is_begun or not _is_within(seat.epoch, self.task.epochs_per_episode):
            raise ValueError(
                "batched environment: state must be of an episode from 0 on and of an epoch within "
                f"[0, {self.task.epochs_per_episode}), got {seat.number!r} and {seat.epoch!r}"
            )
        latest_s = LATEST_START_S if has_course(self.task.world.dynamics) else 0.0
        if not isinstance(seat.start_s, float) or not 0.0 <= seat.start_s <= latest_s:
            raise ValueError(
                f"batched environment: state must be of a start_s from 0 to {latest_s:g}, got "
                f"{seat.start_s!r}"
            )


def compile_steps(task: PlacementTask) -> None:
    """Compile all that steps environments of a task, so that their first step does not wait."""
    if is_compilable(task):
        with BatchedPlacementEnv(task, num_envs=2, seed=0) as batch:
            batch.reset()
            batch.step(np.zeros((2, len(task.codec.sizes)), dtype=np.int64))


def _is_within(number: object, end: int) -> bool:
    """Whether it is a whole number within [0, ``end``)."""
    return type(number) is int and 0 <= number < end

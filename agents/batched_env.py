"""N placement episodes stepped together: arrays in, arrays out, on one or more processes."""

import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from agents.batch_step import BatchStep
from agents.episode import Episode
from agents.task import PlacementTask
from des import Placement
from des.checks import MOST_ITEMS, require_count


class _Outcome(NamedTuple):
    """One environment's part of a `BatchStep`."""

    observation: np.ndarray
    final_observation: np.ndarray
    reward: float
    truncated: bool
    metrics: dict[str, float]


class _Seat:
    """One environment of the batch: begins its next episode when the last is over.

    Everything random follows from (seed, position in the batch, number of the episode), so the
    outcome does not depend on which process the environment lives in.
    """

    def __init__(self, task: PlacementTask, seed: int, position: int) -> None:
        self._task = task
        self._key = (seed, position)
        self._number = -1
        self._episode = Episode(task)

    def begin(self) -> np.ndarray:
        self._number += 1
        return self._episode.begin((*self._key, self._number))

    def step(self, action: list[int]) -> _Outcome:
        after = self._episode.step(self._task.codec.decode(action))
        observation = after.observation
        if after.truncated:
            observation = self.begin()
        return _Outcome(
            observation, after.observation, after.reward, after.truncated, after.metrics
        )

    def state(self) -> dict[str, object]:
        return {
            "number": self._number,
            "epoch": self._episode.epoch,
            "domain_of_layer": list(self._episode.last_placement.domain_of_layer),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        self._number = state["number"]
        placement = Placement(domain_of_layer=tuple(state["domain_of_layer"]))
        self._episode.resume((*self._key, self._number), state["epoch"], placement)


class _Shard:
    """Neighbouring seats of the batch, and the calls that a process answers for them."""

    def __init__(self, task: PlacementTask, seed: int, positions: Sequence[int]) -> None:
        self._seats = [_Seat(task, seed, position) for position in positions]

    def begin(self) -> list[np.ndarray]:
        return [seat.begin() for seat in self._seats]

    def step(self, actions: list[list[int]]) -> list[_Outcome]:
        return [seat.step(action) for seat, action in zip(self._seats, actions, strict=True)]

    def state(self) -> list[dict[str, object]]:
        return [seat.state() for seat in self._seats]

    def load_state(self, states: list[dict[str, Any]]) -> None:
        for seat, state in zip(self._seats, states, strict=True):
            seat.load_state(state)


def _serve(connection: Connection, shard: _Shard) -> None:
    """Answer calls until the other side closes; Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            name, arguments = connection.recv()
        except (EOFError, ConnectionResetError):
            return
        try:
            answer = (True, getattr(shard, name)(*arguments))
        except Exception as error:  # noqa: BLE001 - raised again in the parent
            answer = (False, _portable(error))
        connection.send(answer)


def _portable(error: Exception) -> Exception:
    """Return the error with the worker's traceback, as one that can be sent."""
    where = traceback.format_exc()
    try:
        pickle.dumps(error)
    except Exception:  # noqa: BLE001 - an error may hold anything, and fail in any way
        return RuntimeError(f"simulation worker: {where}")
    error.add_note(f"In a simulation worker: {where}")
    return error


class _Worker:
    """A shard that lives in a process of its own."""

    def __init__(self, shard: _Shard) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_serve, args=(theirs, shard), daemon=True
        )
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # inherited; _serve keeps it
        try:
            self._process.start()
        finally:
            signal.signal(signal.SIGINT, before)
        theirs.close()

    def ask(self, name: str, *arguments: object) -> None:
        """Send a call without waiting for its answer; a dead worker shows when it is awaited."""
        with suppress(BrokenPipeError):
            self._connection.send((name, arguments))

    def answer(self) -> tuple[bool, Any]:
        """Wait for the answer: whether all went well, and the answer or the error."""
        try:
            fine, content = self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode
            return False, RuntimeError(f"simulation worker ended with exit code {code}")
        return fine, content

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join()


class BatchedPlacementEnv:
    """N environments of one task; see `agents.batch_step.BatchStep` for what a step returns.

    Results are the same for any ``num_workers``. Use it as a context manager, or call `close`.

    Parameters
    ----------
    task
        What is decided.
    num_envs
        Environments in the batch, N.
    seed
        Of everything random in the batch.
    num_workers
        Processes that simulate; 1 stays in this process.
    """

    def __init__(
        self, task: PlacementTask, *, num_envs: int, seed: int, num_workers: int = 1
    ) -> None:
        require_count("batched environment", "num_envs", num_envs, MOST_ITEMS)
        require_count("batched environment", "num_workers", num_workers, MOST_ITEMS)
        if seed < 0:
            raise ValueError(f"batched environment: seed must be at least 0, got {seed!r}")
        self.task = task
        self.num_envs = num_envs
        num_shards = min(num_workers, num_envs)
        positions = [part.tolist() for part in np.array_split(np.arange(num_envs), num_shards)]
        self._borders = np.cumsum([len(part) for part in positions])[:-1].tolist()
        shards = [_Shard(task, seed, part) for part in positions]
        self._is_closed = False
        self._local = shards[0] if num_shards == 1 else None
        self._workers = [] if num_shards == 1 else [_Worker(shard) for shard in shards]

    @property
    def observation_size(self) -> int:
        """Entries of one observation, D."""
        return self.task.observation_size

    @property
    def action_sizes(self) -> tuple[int, ...]:
        """Number of choices of every action component, A of them."""
        return self.task.codec.sizes

    @property
    def ordinal_starts(self) -> tuple[float | None, ...]:
        """Where to start looking in each ordered component; None for a plain category."""
        return self.task.codec.ordinal_starts

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin the next episode in every environment; first observations (N, D)."""
        return np.stack(self._call("begin"))

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        """Apply actions (N, A)."""
        shape = (self.num_envs, len(self.action_sizes))
        if actions.shape != shape or actions.dtype.kind not in "iu":
            raise ValueError(
                f"batched environment: actions must be whole numbers shaped {shape}, got "
                f"{actions.dtype} shaped {actions.shape}"
            )
        within = (actions >= 0) & (actions < np.array(self.action_sizes))
        if not within.all():
            row, component = np.argwhere(~within)[0].tolist()
            raise ValueError(
                f"batched environment: actions[{row}, {component}] must be within "
                f"[0, {self.action_sizes[component]}), got {actions[row, component]}"
            )
        outcomes = cast(list[_Outcome], self._call("step", actions.tolist()))
        return BatchStep(
            observations=np.stack([outcome.observation for outcome in outcomes]),
            final_observations=np.stack([outcome.final_observation for outcome in outcomes]),
            rewards=np.array([outcome.reward for outcome in outcomes], dtype=np.float32),
            terminated=np.zeros(self.num_envs, dtype=np.bool_),
            truncated=np.array([outcome.truncated for outcome in outcomes], dtype=np.bool_),
            metrics={
                name: np.array([outcome.metrics[name] for outcome in outcomes])
                for name in outcomes[0].metrics
            },
        )

    def state(self) -> dict[str, object]:
        """Everything that `load_state` needs to continue from here."""
        return {"seats": self._call("state")}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned, in a batch of the same task, seed and size."""
        seats = state["seats"]
        if len(seats) != self.num_envs:
            raise ValueError(
                f"batched environment: state must be of {self.num_envs} environments, "
                f"got {len(seats)}"
            )
        self._call("load_state", seats)

    def close(self) -> None:
        """End the worker processes, if any."""
        for worker in self._workers:
            worker.close()
        self._workers, self._local, self._is_closed = [], None, True

    def __enter__(self) -> "BatchedPlacementEnv":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, name: str, items: list[Any] | None = None) -> list[Any]:
        """Call all shards, each with its part of ``items``, and join their answers."""
        if self._is_closed:
            raise RuntimeError("batched environment: is closed")
        if self._local is not None:
            arguments = [] if items is None else [items]
            return getattr(self._local, name)(*arguments) or []
        starts, ends = [0, *self._borders], [*self._borders, self.num_envs]
        for worker, start, end in zip(self._workers, starts, ends, strict=True):
            worker.ask(name, *([] if items is None else [items[start:end]]))
        # All answers are read before any error is raised, so the workers stay in step.
        answers = [worker.answer() for worker in self._workers]
        for fine, content in answers:
            if not fine:
                raise content
        return [item for _, content in answers for item in content or []]

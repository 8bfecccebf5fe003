"""Actors of Ray that do numbered jobs and are replaced when they are lost."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayActorError,
    RayError,
    RayTaskError,
    WorkerCrashedError,
)

from des.base.checks import MOST_ITEMS, require_count, require_positive

Actor = Any
"""Handle of an actor: has the methods of its class, each with ``remote``."""

Ask = Callable[[Actor, int], "ray.ObjectRef[Any]"]
"""Sends a job to an actor."""

_LOST = (RayActorError, ObjectLostError, WorkerCrashedError, NodeDiedError, OutOfMemoryError)


@dataclass(slots=True, kw_only=True, eq=False)
class _Member:
    """An actor, and the jobs that it has done before: what they need is there already."""

    actor: Actor
    known_jobs: set[int] = field(default_factory=set)


class ActorPool:
    """Actors that do jobs; whichever is lost is replaced, and its job is done again.

    Jobs are numbered, and a free actor prefers those that it has done before.

    Parameters
    ----------
    start
        Starts an actor; it must have a method ``ping``.
    num_actors
        Actors at work.
    max_losses
        Actors that may be lost in a row, without any job done in between.
    timeout_s
        After that long without any answer the actors at work are given up for lost. [s]
    start_timeout_s
        After that long it is an error that no actor has started. [s]
    """

    def __init__(
        self,
        start: Callable[[], Actor],
        *,
        num_actors: int,
        max_losses: int,
        timeout_s: float,
        start_timeout_s: float,
    ) -> None:
        require_count("rollouts on Ray", "max_losses", max_losses, MOST_ITEMS)
        require_positive("rollouts on Ray", "timeout_s", timeout_s)
        require_positive("rollouts on Ray", "start_timeout_s", start_timeout_s)
        self._start, self._max_losses = start, max_losses
        self._timeout_s, self._start_timeout_s = timeout_s, start_timeout_s
        self._num_losses = 0
        self._idle: list[_Member] = []
        self._busy: dict[ray.ObjectRef[Any], tuple[_Member, int | None]] = {}
        for _ in range(num_actors):
            self._hire()

    def run(
        self, ask: Ask, num_jobs: int, on_done: Callable[[int], None] | None = None
    ) -> list[Any]:
        """Do jobs 0, 1, ... and return their results in order.

        Parameters
        ----------
        ask
            Sends job ``n`` to an actor.
        on_done
            Called after each job with the number of jobs done.

        Raises
        ------
        Exception
            Error of a job, as it was raised there.
        RuntimeError
            If too many actors are lost in a row, or none can be started.
        """
        waiting = list(range(num_jobs))
        results: dict[int, Any] = {}
        try:
            while len(results) < num_jobs:
                self._assign(waiting, ask)
                for reference in self._answer():
                    num_before = len(results)
                    self._receive(reference, waiting, results)
                    if on_done is not None and len(results) > num_before:
                        on_done(len(results))
        finally:  # after an error, no worker waits for what is still under way
            self._busy = {answer: (member, None) for answer, (member, _) in self._busy.items()}
        return [results[job] for job in range(num_jobs)]

    def at_work(self) -> list[Actor]:
        """Actors that do a job."""
        return [member.actor for member, job in self._busy.values() if job is not None]

    def close(self) -> None:
        """End all actors."""
        for member in [*self._idle, *(member for member, _ in self._busy.values())]:
            ray.kill(member.actor)
        self._idle, self._busy = [], {}

    def _hire(self) -> None:
        member = _Member(actor=self._start())
        self._busy[member.actor.ping.remote()] = (member, None)  # until it has started

    def _assign(self, waiting: list[int], ask: Ask) -> None:
        while waiting and self._idle:
            member = self._idle.pop(0)
            job = next((job for job in waiting if job in member.known_jobs), waiting[0])
            waiting.remove(job)
            self._busy[ask(member.actor, job)] = (member, job)

    def _answer(self) -> "list[ray.ObjectRef[Any]]":
        """Wait for at least one answer, or give up those who should have answered."""
        at_work = self.at_work()
        timeout_s = self._timeout_s if at_work else self._start_timeout_s
        done, _ = ray.wait([*self._busy], num_returns=1, timeout=timeout_s)
        if not done and not at_work:
            free = ray.available_resources()  # type: ignore[no-untyped-call]
            total = ray.cluster_resources()  # type: ignore[no-untyped-call]
            raise RuntimeError(
                f"rollouts on Ray: no actor has started within {timeout_s:g} s; each needs a CPU, "
                f"and of {total.get('CPU', 0):g} of them {free.get('CPU', 0):g} are free"
            )
        for actor in () if done else at_work:
            ray.kill(actor)  # so that its answer is that it died
        return done

    def _receive(
        self, answer: "ray.ObjectRef[Any]", waiting: list[int], results: dict[int, Any]
    ) -> None:
        member, job = self._busy.pop(answer)
        try:
            result = ray.get(answer)
        except RayTaskError as error:
            self._idle.append(member)
            if job is not None:
                raise _as_raised(error) from None
        except _LOST as error:
            if job is not None:
                waiting.insert(0, job)
            self._replace(member, error)
        else:
            self._idle.append(member)
            if job is not None:
                member.known_jobs.add(job)
                results[job] = result
                self._num_losses = 0

    def _replace(self, member: _Member, error: RayError) -> None:
        ray.kill(member.actor)  # it may only have been out of reach
        self._hire()
        if isinstance(error, RayActorError) and error.actor_init_failed:
            raise RuntimeError(f"rollouts on Ray: an actor cannot be set up: {error}") from error
        self._num_losses += 1
        if self._num_losses > self._max_losses:
            raise RuntimeError(
                f"rollouts on Ray: {self._num_losses} actors were lost in a row, and nothing was "
                f"done in between; the last one: {error}"
            ) from error


def _as_raised(error: RayTaskError) -> BaseException:
    """Return what was raised in the actor, with the traceback from there as a note."""
    cause: BaseException = error.cause
    cause.add_note(f"In an actor of Ray: {error}")
    return cause

"""Picking the batch of the next iteration where works reserve their memory as a whole.

Both rules are pure: they take the lists of an instance and return works, in the order in which they
were picked. Source: the rules of splitwise-sim (Patel et al., "Splitwise", ISCA 2024) and of Orca
(Yu et al., OSDI 2022) as that program has them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from des.base.checks import require_count
from scenarios.reproduce.serving_oracles.pool_works import PhaseWork, RequestState


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """Limits of a batch: requests, tokens, and iterations after which a work cannot be passed."""

    max_batch_size: int
    max_batch_tokens: int = 10**9
    max_preemptions: int = 10**9

    def __post_init__(self) -> None:
        for name in ("max_batch_size", "max_batch_tokens"):
            require_count("batch limits", name, getattr(self, name))
        if self.max_preemptions < 0:
            raise ValueError(
                f"batch limits: max_preemptions must be at least 0, got {self.max_preemptions}"
            )


class Lists(Protocol):
    """Lists of an instance from which a batch is picked."""

    waiting: list[PhaseWork]
    waiting_prompts: list[PhaseWork]
    halted: list[PhaseWork]
    present: list[RequestState]
    batch: list[PhaseWork]

    def waits(self, work: PhaseWork) -> int:
        """Iterations begun without a work that was current."""
        ...


class _Filling:
    """A batch that is being filled; ``is_full`` stays true once it was."""

    __slots__ = ("free_bytes", "limits", "picked", "requests", "tokens")

    def __init__(self, limits: BatchLimits, free_bytes: float) -> None:
        self.limits = limits
        self.free_bytes = free_bytes
        self.tokens = 0
        self.picked: list[PhaseWork] = []
        self.requests: set[RequestState] = set()

    def has_size(self) -> bool:
        return len(self.picked) >= self.limits.max_batch_size

    def is_full_for(self, work: PhaseWork) -> bool:
        return bool(self.picked) and self.tokens + work.cost > self.limits.max_batch_tokens

    def add(self, work: PhaseWork) -> None:
        self.picked.append(work)
        self.requests.add(work.state)
        self.tokens += work.cost

    def reserve(self, work: PhaseWork) -> bool:
        """Take a work that has no memory yet if it fits."""
        if work.memory_bytes > self.free_bytes:
            return False
        self.free_bytes -= work.memory_bytes
        self.add(work)
        return True

    def keep(self, works: Iterable[PhaseWork]) -> None:
        """Take works that have their memory, in order, until the batch is full."""
        for work in works:
            if self.has_size() or self.is_full_for(work):
                return
            if work.state not in self.requests:
                self.add(work)


def pick_splitwise(lists: Lists, limits: BatchLimits, free_bytes: float) -> list[PhaseWork]:
    """Pick a batch: passed-over works, prompts, halted works, the running batch, then the others.

    Parameters
    ----------
    lists
        The lists of the instance; they are not changed.
    free_bytes
        Memory that no work has reserved. [bytes]
    """
    filling = _Filling(limits, free_bytes)
    for work in lists.waiting:
        if lists.waits(work) < limits.max_preemptions or filling.has_size():
            break
        if filling.is_full_for(work):
            break
        if work.state in filling.requests:
            continue
        if work.is_halted:
            filling.add(work)
        else:
            filling.reserve(work)
    for work in lists.waiting_prompts:
        if filling.has_size() or filling.is_full_for(work):
            break
        if work.state not in filling.requests and not filling.reserve(work):
            break
    filling.keep(lists.halted)
    filling.keep(lists.batch)
    if len(filling.requests) < len(lists.present):
        _add_present(filling, lists.present)
    return filling.picked


def _add_present(filling: _Filling, present: Sequence[RequestState]) -> None:
    requests = filling.requests
    for state in present:
        if filling.has_size():
            return
        if state in requests:
            continue
        work = state.current
        if filling.is_full_for(work):
            return
        if work.is_halted:
            filling.add(work)
        elif not filling.reserve(work):
            return


def pick_orca(lists: Lists, limits: BatchLimits, free_bytes: float) -> list[PhaseWork]:
    """Keep the running batch and add the current works of present requests while they fit."""
    filling = _Filling(limits, free_bytes)
    for work in lists.batch:
        filling.add(work)
    for state in lists.present:
        if filling.has_size():
            break
        if state not in filling.requests and not filling.reserve(state.current):
            break
    return filling.picked

"""Routers of a fleet: the instance at which a request arrives, by pure rules in one table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from des.serving.fleet_requests import FleetRequest


class Member(Protocol):
    """Load of an instance as a router sees it."""

    @property
    def number(self) -> int:
        """Number, by which ties are broken."""
        ...

    @property
    def present(self) -> int:
        """Requests there."""
        ...

    @property
    def due_tokens(self) -> int:
        """Prompt tokens there that are not read yet."""
        ...

    @property
    def used(self) -> int:
        """Tokens in its KV memory."""
        ...

    def cached_tokens(self, one: FleetRequest) -> int:
        """Tokens of a request that need not be read there."""
        ...


@dataclass(slots=True, kw_only=True)
class RouterTurn:
    """Number of a placement in its pool, and the generator of the run."""

    number: int
    rng: np.random.Generator


Router = Callable[[Sequence[Member], FleetRequest, bool, RouterTurn], int]
"""Choose the place of one of the members, which are not empty, for a request that reads its prompt
there and leaves (True), or does all or only the rest there (False)."""


def _least(members: Sequence[Member], load: Callable[[Member], float]) -> int:
    return min(range(len(members)), key=lambda place: (load(members[place]), members[place].number))


def least_work(members: Sequence[Member], one: FleetRequest, reads: bool, turn: RouterTurn) -> int:
    """Take the least to read in a prompt pool, the fewest requests in another one."""
    del one, turn
    return _least(members, lambda each: each.due_tokens if reads else each.present)


def random_instance(
    members: Sequence[Member], one: FleetRequest, reads: bool, turn: RouterTurn
) -> int:
    """Draw an instance."""
    del one, reads
    return int(turn.rng.integers(len(members)))


def in_turn(members: Sequence[Member], one: FleetRequest, reads: bool, turn: RouterTurn) -> int:
    """Take one after the other."""
    del one, reads
    return turn.number % len(members)


def jsq(members: Sequence[Member], one: FleetRequest, reads: bool, turn: RouterTurn) -> int:
    """Join the shortest queue: the fewest requests."""
    del one, reads, turn
    return _least(members, lambda each: each.present)


def token_jsq(members: Sequence[Member], one: FleetRequest, reads: bool, turn: RouterTurn) -> int:
    """Join the shortest queue in tokens: the least to read."""
    del one, reads, turn
    return _least(members, lambda each: each.due_tokens)


def kv_aware(members: Sequence[Member], one: FleetRequest, reads: bool, turn: RouterTurn) -> int:
    """Take the least KV memory in use or soon in use."""
    del one, reads, turn
    return _least(members, lambda each: each.used + each.due_tokens)


def prefix_aware(
    members: Sequence[Member], one: FleetRequest, reads: bool, turn: RouterTurn
) -> int:
    """Take the least to read once the request is there, and KV memory in use.

    Tokens of its prompt that the cache of an instance holds need not be read there. Source: the
    documented cost of the KV router of NVIDIA Dynamo, blocks to prefill plus blocks that decode,
    with an overlap weight of 1.
    """
    del reads, turn
    return _least(
        members,
        lambda each: each.used + each.due_tokens + one.to_read - each.cached_tokens(one),
    )


ROUTERS: Mapping[str, Router] = {
    "least_work": least_work,
    "random": random_instance,
    "round_robin": in_turn,
    "jsq": jsq,
    "token_jsq": token_jsq,
    "kv_aware": kv_aware,
    "prefix_aware": prefix_aware,
}
"""Routers by name."""

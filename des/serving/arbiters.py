"""Arbiters: rules that grant new instances to applications where servers are too few."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from des.base.checks import require_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """New instances that an application wants, and those that it has."""

    num_wanted: int
    num_held: int
    num_gpus: int
    """GPUs of one instance."""
    priority: int = 0

    def __post_init__(self) -> None:
        require_count("claim", "num_gpus", self.num_gpus)


Arbiter = Callable[[Claim, int, int], tuple[float, ...]]
"""Key of a claim at a place with a number of instances granted so far: the least is served next."""


def first_come(claim: Claim, place: int, granted: int) -> tuple[float, ...]:
    """Serve one application after the other, in the order of the file."""
    del claim, granted
    return (place,)


def by_priority(claim: Claim, place: int, granted: int) -> tuple[float, ...]:
    """Serve the highest priority first; equal ones share as in `max_min`."""
    return (-claim.priority, *max_min(claim, place, granted))


def max_min(claim: Claim, place: int, granted: int) -> tuple[float, ...]:
    """Serve the application with the fewest GPUs."""
    return ((claim.num_held + granted) * claim.num_gpus, place)


ARBITERS: Mapping[str, Arbiter] = {
    "max_min": max_min,
    "priority": by_priority,
    "first_come": first_come,
}
"""Arbiters by name."""


def granted_instances(
    claims: Sequence[Claim], rooms: Sequence[int], arbiter: Arbiter
) -> tuple[int, ...]:
    """Instances that each claim gets, one at a time on the first server with room.

    Parameters
    ----------
    rooms
        Free GPUs of each server.

    Examples
    --------
    >>> claims = [Claim(num_wanted=5, num_held=held, num_gpus=4) for held in (0, 2)]
    >>> granted_instances(claims, [8, 8], max_min), granted_instances(claims, [8, 8], first_come)
    ((3, 1), (4, 0))
    """
    free, granted = list(rooms), [0] * len(claims)
    open_places = [place for place, claim in enumerate(claims) if claim.num_wanted]
    while open_places:
        place = min(open_places, key=lambda each: arbiter(claims[each], each, granted[each]))
        claim = claims[place]
        server = next((n for n, room in enumerate(free) if room >= claim.num_gpus), None)
        if server is None:
            open_places.remove(place)
            continue
        free[server] -= claim.num_gpus
        granted[place] += 1
        if granted[place] == claim.num_wanted:
            open_places.remove(place)
    return tuple(granted)

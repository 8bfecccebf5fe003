"""Load of a domain that is replayed: that of a queue of jobs which was simulated before."""

from dataclasses import dataclass
from itertools import pairwise

from des.base.checks import require_non_negative
from des.world.domain_load import DomainLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedLoad:
    """Loads of a domain, each from its time on; idle before the first, the last one stays.

    Parameters
    ----------
    changes
        Time and load of each change, in order of time. [s]
    """

    changes: tuple[tuple[float, DomainLoad], ...]

    def __post_init__(self) -> None:
        for time_s, _ in self.changes:
            require_non_negative("replayed load", "time", time_s)
        for (before_s, _), (after_s, _) in pairwise(self.changes):
            if after_s <= before_s:
                raise ValueError(
                    f"replayed load: times must rise, got {after_s!r} after {before_s!r}"
                )

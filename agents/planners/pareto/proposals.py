"""Plans that a policy or method proposes for preferences."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.decision.situation import Preference
from des import Plan, Topology, Workload

Propose = Callable[[Topology, Workload, Preference], Sequence[Plan]]
"""All plans that a policy proposes for one preference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """All plans of one sweep, and what is to be said of them."""

    plans: tuple[Plan, ...]
    notes: tuple[str, ...] = ()

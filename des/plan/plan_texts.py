"""Plans in words: placements by the names of domains, a bar between replicas."""

import re
import reprlib
from collections.abc import Sequence

from des.plan.placement import Placement
from des.plan.plan import Plan
from des.plan.shares import parse_shares


def placement_text(placement: Placement, domain_names: Sequence[str]) -> str:
    """Write a placement with names of domains, as `Placement.parse` reads it.

    Examples
    --------
    >>> placement_text(Placement.parse("1*28,0*52"), ["East", "West"])
    'West*28,East*52'
    """
    return ",".join(f"{domain_names[one.domain]}*{one.num_layers}" for one in placement.stages)


def pipelines_text(plan: Plan, domain_names: Sequence[str]) -> str:
    """Write the pipelines of a plan as `parse_pipelines` reads them.

    Examples
    --------
    >>> here, there = Placement.parse("0*28,1*52"), Placement.parse("2*80")
    >>> plan = Plan(placement=here, replicas=(there,), shares=(20, 12))
    >>> pipelines_text(plan, ["East", "Central", "West"])
    'East*28,Central*52 x20 | West*80 x12'
    """
    texts = [placement_text(one, domain_names) for one in plan.placements]
    shares = [f" x{share}" for share in plan.shares] or [""] * len(texts)
    return " | ".join(text + share for text, share in zip(texts, shares, strict=True))


def parse_pipelines(
    text: str, domain_names: Sequence[str] = ()
) -> tuple[tuple[Placement, ...], tuple[int, ...]]:
    """Read placements of replicas, a bar between two, and the microbatches that each takes.

    Those are written ``x20`` behind a placement, of all replicas or of none; without them the
    replicas share a step evenly and the second part is empty.

    Raises
    ------
    ValueError
        If an item is not a domain or a count, or only some of the replicas have microbatches.

    Examples
    --------
    >>> names = ["East", "West", "North"]
    >>> placements, shares = parse_pipelines("East*1,West*2 x3 | North*3 x5", names)
    >>> [str(one) for one in placements], shares
    (['0*1,1*2', '2*3'], (3, 5))
    """
    placements: list[Placement] = []
    shares: list[int] = []
    for part in text.split("|"):
        match = re.fullmatch(r"(.*?)(?:\s+x\s*([0-9]+))?\s*", part, re.DOTALL)
        placement, share = match.groups() if match else (part, None)
        placements.append(Placement.parse(placement, domain_names))
        shares += parse_shares(share) if share else ()
    if shares and len(shares) != len(placements):
        raise ValueError(
            f"plan: microbatches such as x20 must stand behind each of the {len(placements)} "
            f"replicas or behind none, got {len(shares)} in {reprlib.repr(text)}"
        )
    return tuple(placements), tuple(shares)

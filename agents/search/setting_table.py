"""Settings of a search, and which of them have something in common."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from agents.search.settings import BoundSetting


@dataclass(frozen=True, kw_only=True, eq=False)
class SettingTable:
    """Settings of a search; a table is equal to itself alone, so that parts are known by it."""

    settings: tuple[BoundSetting, ...]

    @cached_property
    def families(self) -> list[list[BoundSetting]]:
        """Settings that differ by the size of groups of microbatches alone, small ones first."""
        families: dict[tuple[object, ...], list[BoundSetting]] = {}
        for one in self.settings:
            families.setdefault(_family_of(one), []).append(one)
        return [sorted(own, key=lambda each: each.group_factor) for own in families.values()]

    def near(self, seen: Iterable[BoundSetting]) -> "SettingTable":
        """The settings whose family has been seen."""
        families = set(map(_family_of, seen))
        kept = (one for one in self.settings if _family_of(one) in families)
        return SettingTable(settings=tuple(kept))

    @cached_property
    def unchunked(self) -> list[list[BoundSetting]]:
        """Settings that give each device one stage, each for itself."""
        return [[one] for one in self.settings if one.num_chunks == 1]

    @cached_property
    def seldom(self) -> list[list[BoundSetting]]:
        """The same for pipelines that seldom exchange with others."""
        return [[replace(one, has_outer_state=True)] for (one,) in self.unchunked]

    @cached_property
    def of_copies(self) -> list[list[BoundSetting]]:
        """Settings whose copies on several sites have equal stages."""
        alike: dict[tuple[object, ...], list[BoundSetting]] = {}
        for one in self.settings:
            key = one.degrees, one.microbatch_size, one.recomputation, one.num_chunks
            alike.setdefault(key, []).append(one)
        return list(alike.values())


def _family_of(one: BoundSetting) -> tuple[object, ...]:
    """All of a setting but the size of groups, copies and what follows from the trainer."""
    sizes = one.microbatch_size, one.num_chunks
    return one.degrees, one.recomputation, one.schedule, *sizes

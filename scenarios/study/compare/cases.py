"""Cases of a comparison: a world of a suite and a draw of it, under all methods."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agents.decision.families import SYNCHRONOUS, Family
from agents.trainers.ideal import IDEAL
from des.base.lazy import lazy_imports
from scenarios.suites import EXAMPLES_NAME, SITE_NAMES, SuiteWorld, suite

with lazy_imports(__name__):
    from scenarios.suites import examples

Part = Literal["static", "dynamic"]
"""One plan for a network that stands still, or one plan per epoch for one that moves."""

GIVEN = "network"
"""Name that a given world has in place of a suite's."""

STATIC_SUITES = ("eval_static", "sites_static", EXAMPLES_NAME, GIVEN)
"""Suites whose networks stand still."""

SITES = (*SITE_NAMES, EXAMPLES_NAME, GIVEN)
"""Suites whose references are the best plan of all methods and the proven bound."""

BEST_SCHEDULE = "_best_schedule"
"""Ends the names of planners whose plans may have a schedule of halved backward passes."""

FORESEEN = "_foreseen"
"""Ends the names of rules that know all plans of the draw from the first epoch on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedDraw:
    """A draw of a world, and the part of the comparison.

    Attributes
    ----------
    num_domains
        Part of the suite that the world is counted in; empty: all of it.
    methods
        Planners or rules by name.
    max_judged
        Plans that the proof of an optimum may take.
    num_epochs
        Of a dynamic case, the first ones; None: all.
    families
        Of real sites: those that answers and candidates of rules are of, and the bound.
    trainer
        Trainer that runs the plans; ``ideal`` for perfect devices.
    given
        World that takes the place of a suite's.
    """

    suite: str
    seed: int
    index: int
    draw: int
    methods: tuple[str, ...]
    num_domains: tuple[int, ...] = ()
    max_judged: int | None = None
    num_epochs: int | None = None
    families: tuple[Family, ...] = SYNCHRONOUS
    trainer: str = IDEAL.name
    given: SuiteWorld | None = None

    @property
    def part(self) -> Part:
        """Part of the comparison that the case belongs to."""
        return "static" if self.suite in STATIC_SUITES else "dynamic"

    @property
    def has_sites(self) -> bool:
        """Whether the world is one of real sites."""
        return self.suite in SITES

    @property
    def name(self) -> str:
        """World and draw in one word, which a file may be called."""
        which = f"{self.seed}-{self.index:04}" if self.given is None else self.given.digest[:12]
        return f"{self.suite}-{which}-{self.draw}"

    def about(self, world: SuiteWorld) -> dict[str, object]:
        """Columns that every row of the case begins with."""
        return {
            "case": self.name,
            "suite": self.suite,
            "world": world.name,
            "draw": self.draw,
            "num_domains": world.num_domains,
            "ratio": world.ratio,
            "model": world.workload.name,
            "tokens_per_step": world.workload.tokens_per_iteration,
        }

    def world(self) -> SuiteWorld:
        """Make the world.

        Raises
        ------
        ValueError
            If the suite has no such world.
        """
        if self.given is not None:
            return self.given
        if self.suite == EXAMPLES_NAME:
            if self.num_domains:
                raise ValueError(
                    f"{EXAMPLES_NAME}: num_domains must not be given, as the examples are as they "
                    f"are; got {', '.join(map(str, self.num_domains))}"
                )
            return examples.example_world(self.index)
        family = suite(self.suite)
        part = family.with_domains(*self.num_domains) if self.num_domains else family
        return part.world(self.index, self.seed)


def compare_draws(
    firsts: Sequence[ComparedDraw], *, num_worlds: int, num_draws: int
) -> list[ComparedDraw]:
    """List all cases, suite by suite and world by world; parts without a method are left out.

    ``firsts`` are the first draws of the first worlds of all suites.
    """
    return [
        replace(first, index=index, draw=first.draw + draw)
        for first in firsts
        for index in range(num_worlds)
        for draw in range(num_draws)
        if first.methods
    ]

"""Numbers of worlds, draws, epochs and decisions to measure."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Numbers of worlds, draws, epochs and decisions to measure.

    Attributes
    ----------
    num_worlds, num_draws
        Of a suite, and of each world.
    num_epochs
        Decisions of a draw.
    num_load_epochs
        Epochs for the share of stable ones.
    num_decisions, timing_budget_s
        Timed decisions, fewer where the time runs out before. [s]
    num_static, most_judged
        Worlds that are solved exactly, and plans of one proof.
    num_searches
        Of 10 domains, from starts of their own; the best one is the reference.
    fluctuations
        Of bandwidths, 0.3 among them.
    num_fronts, num_evaluations
        Priced worlds, and plans that the search for the reference front of each judges.
    """

    num_worlds: int
    num_draws: int
    num_epochs: int
    num_load_epochs: int
    num_decisions: int
    timing_budget_s: float
    num_static: int
    most_judged: int
    num_searches: int
    fluctuations: tuple[float, ...]
    num_fronts: int
    num_evaluations: int

    def with_worlds(self, num_worlds: int) -> "Sizes":
        """Return the sizes for another number of worlds; fewer worlds shrink all in proportion.

        Examples
        --------
        >>> part = FULL.with_worlds(8)
        >>> part.num_load_epochs, part.num_decisions, part.num_static, part.num_fronts
        (256, 250, 15, 1)
        """
        share = min(1.0, num_worlds / self.num_worlds)
        return replace(
            self,
            num_worlds=num_worlds,
            num_load_epochs=max(1, int(share * self.num_load_epochs)),
            num_decisions=max(1, int(share * self.num_decisions)),
            num_static=max(1, int(share * self.num_static)),
            num_fronts=max(1, int(share * self.num_fronts)),
        )


FULL = Sizes(
    num_worlds=32,
    num_draws=1,
    num_epochs=8,
    num_load_epochs=1024,
    num_decisions=1000,
    timing_budget_s=40.0,
    num_static=60,
    most_judged=20_000_000,
    num_searches=3,
    fluctuations=(0.0, 0.3, 0.6),
    num_fronts=6,
    num_evaluations=20_000,
)
"""A decision under a trainer takes 0.1 to 0.5 s, so a draw has few epochs."""

SHORT = Sizes(
    num_worlds=2,
    num_draws=1,
    num_epochs=8,
    num_load_epochs=16,
    num_decisions=200,
    timing_budget_s=8.0,
    num_static=2,
    most_judged=2_000_000,
    num_searches=1,
    fluctuations=(0.0, 0.3, 0.6),
    num_fronts=1,
    num_evaluations=1_000,
)

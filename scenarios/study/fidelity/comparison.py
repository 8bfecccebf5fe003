"""Comparison of levels of detail: times, ranks, and what a plan chosen at one costs at the next."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pandas as pd

from calibration.cases.case import Measurement, PlacementCase
from calibration.fit.errors import fidelity
from calibration.fit.regimes import case_names

Results = Mapping[str, Sequence[tuple[Measurement, float]]]
"""Measurements and CPU seconds of all cases by level, in the order of levels."""


def placement_rows(cases: Sequence[PlacementCase], results: Results) -> pd.DataFrame:
    """Return a row for each level and placement, without CPU times: equal runs give equal rows."""
    return pd.DataFrame(
        [
            {
                "level": level,
                "placement": index,
                "domains_layers": " | ".join(map(str, case.plan.placements)),
                "schedule": case.plan.schedule,
                "iteration_s": found.makespan_s,
                "exposed_s": sum(found.exposed_s),
            }
            for level, measured in results.items()
            for index, (case, (found, _)) in enumerate(zip(cases, measured, strict=True))
        ]
    )


def level_rows(cases: Sequence[PlacementCase], results: Results) -> pd.DataFrame:
    """Return a row for each level; its error and ranks are those against the level before.

    ``regret_fraction`` is how much longer the best plan of the level before takes at this level
    than the best plan of this level.
    """
    names = case_names(cases)
    rows: list[dict[str, object]] = []
    before: Sequence[Measurement] | None = None
    for level, measured in results.items():
        found = [each for each, _ in measured]
        times_s = [each.makespan_s for each in found]
        row: dict[str, object] = {
            "level": level,
            "iteration_s": sum(times_s) / len(times_s),
            "exposed_s": sum(sum(each.exposed_s) for each in found) / len(found),
            "best_placement": times_s.index(min(times_s)),
        }
        if before is not None:
            errors = fidelity(names, before, found).makespan
            earlier_s = [each.makespan_s for each in before]
            chosen_s = times_s[earlier_s.index(min(earlier_s))]
            row |= {
                "error_before_fraction": errors.mean,
                "kendall_tau": errors.kendall_tau,
                "regret_fraction": chosen_s / min(times_s) - 1.0,
            }
        rows.append(row)
        before = found
    return pd.DataFrame(rows)


def cpu_s_of(results: Results) -> dict[str, float]:
    """Mean CPU seconds of a placement by level, without the first, which starts and compiles."""
    means = {}
    for level, measured in results.items():
        rest = [cpu_s for _, cpu_s in measured[1:]] or [measured[0][1]]
        means[level] = sum(rest) / len(rest)
    return means


def choices_kept(levels: pd.DataFrame) -> list[str]:
    """Say between which levels the best plan stays the best."""
    lines = []
    for before, row in pairwise(levels.to_dict("records")):
        stays = row["regret_fraction"] == 0.0
        said = "stays the best" if stays else f"costs {100 * row['regret_fraction']:.2f} % more"
        lines.append(f"the best plan of {before['level']} {said} on {row['level']}")
    return lines

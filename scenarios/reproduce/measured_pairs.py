"""Pairs of measured runs of one job that the simulator ranks otherwise."""

from collections.abc import Iterable
from itertools import combinations

from scenarios.reproduce.measured_tables import MeasuredTable

CLEAR = 0.1
"""Difference of measured figures from which a pair is clear: twice what two measurements of one
configuration differ by.
"""


def ranked_otherwise(tables: Iterable[MeasuredTable]) -> list[str]:
    """Count, for each table, clear pairs of ways to run one job, and those in the other order.

    A pair has equal jobs and quantities.
    """
    lines = []
    for table in tables:
        figures: dict[tuple[object, ...], list[tuple[float, float]]] = {}
        for cell in table.cells:
            if cell.job is not None:
                same = figures.setdefault((cell.quantity, *cell.job), [])
                same.append((cell.measured, cell.predicted))
        num_clear = num_wrong = 0
        for same in figures.values():
            for (one, one_found), (other, other_found) in combinations(same, 2):
                if abs(one / other - 1.0) < CLEAR:
                    continue
                num_clear += 1
                num_wrong += (one < other) != (one_found < other_found)
        if num_clear:
            lines.append(
                f"{table.name}: {num_wrong} of {num_clear} pairs of runs of one job that differ by "
                f"{CLEAR:.0%} or more are ranked otherwise."
            )
    return lines

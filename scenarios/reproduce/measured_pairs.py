"""Pairs of measured runs of one job that the simulator ranks otherwise."""

from itertools import combinations

import pandas as pd

CLEAR = 0.1
"""Difference of measured times from which a pair is clear: twice what two measurements of one
configuration differ by.
"""

_SAME_JOB = ("table", "num_gpus", "hidden_size", "num_layers", "global_batch")


def ranked_otherwise(frame: pd.DataFrame) -> list[str]:
    """Count, for each table, clear pairs of ways to run one job, and those in the other order.

    A pair has equal GPUs, sizes and global batches.
    """
    lines = []
    for name, rows in frame.groupby("table", sort=False):
        num_clear = num_wrong = 0
        for _, same in rows.groupby(list(_SAME_JOB)):
            times = list(zip(same["measured_s"], same["predicted_s"], strict=True))
            for (one_s, one_found_s), (other_s, other_found_s) in combinations(times, 2):
                if abs(one_s / other_s - 1.0) < CLEAR:
                    continue
                num_clear += 1
                num_wrong += (one_s < other_s) != (one_found_s < other_found_s)
        if num_clear:
            lines.append(
                f"{name}: {num_wrong} of {num_clear} pairs of runs of one job that differ by "
                f"{CLEAR:.0%} or more are ranked otherwise."
            )
    return lines

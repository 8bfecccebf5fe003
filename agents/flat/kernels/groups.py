"""Groups of environments that are simulated together."""

import numpy as np

from des.base.jit import kernel
from des.compiled.many.layout import Links, RowGroups, Runs, Whole


@kernel
def sort_rows(
    rows: Whole, runs: Runs, links: Links, num_foreseeable: int, groups: RowGroups
) -> None:
    """Put rows in order of how they are simulated.

    Placements of ``n`` stages are group ``n - 1`` if their course is foreseeable, which has at most
    ``num_foreseeable`` stages, else group ``num_foreseeable + n - 1``.
    """
    of_row, ordered, starts = groups
    mark_groups(rows, runs, links, num_foreseeable, of_row)
    starts[:] = 0
    for at in range(rows.size):
        starts[of_row[at] + 2] += 1
    for group in range(2, starts.size):
        starts[group] += starts[group - 1]
    for at in range(rows.size):
        place = starts[of_row[at] + 1]
        ordered[place] = rows[at]
        starts[of_row[at] + 1] = place + 1


@kernel
def mark_groups(rows: Whole, runs: Runs, links: Links, num_foreseeable: int, groups: Whole) -> None:
    """Write the group of each row; see `des.compiled.eligibility` for what is foreseeable."""
    stage_count, domains, route_start = runs.num_stages, runs.domain, links.route_start
    num_domains = links.inner_latency_s.size
    user = np.full(num_domains, -1)
    for at in range(rows.size):
        row = rows[at]
        num_stages = stage_count[row]
        is_foreseeable = num_stages <= num_foreseeable
        before = -1
        for stage in range(num_stages if is_foreseeable else 0):
            here = domains[row, stage]
            is_foreseeable &= user[here] != row  # a stage has its domain for itself
            user[here] = row
            if before >= 0:  # and links from and to the one before
                down, up = before * num_domains + here, here * num_domains + before
                is_foreseeable &= route_start[down + 1] - route_start[down] == 1
                is_foreseeable &= route_start[up + 1] - route_start[up] == 1
            before = here
        groups[at] = num_stages - 1 if is_foreseeable else num_foreseeable + num_stages - 1

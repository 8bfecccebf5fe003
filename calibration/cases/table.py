"""Table of several simulators' results on the same cases, one row per case."""

from collections.abc import Mapping, Sequence

import pandas as pd

from calibration.cases.case import Measurement, PlacementCase
from calibration.cases.case_key import describe_case


def sample_table(
    cases: Sequence[PlacementCase], said: Mapping[str, Sequence[Measurement]], *, joint: str
) -> pd.DataFrame:
    """Put cases and measurements side by side.

    Parameters
    ----------
    said
        Measurements of all cases, by who made them.
    joint
        Stands in the name of a column between who and what.
    """
    rows = []
    for position, case in enumerate(cases):
        row: dict[str, object] = {"position": position, **describe_case(case)}
        for name, measurements in said.items():
            each = measurements[position]
            row |= {
                f"{name}{joint}makespan_s": each.makespan_s,
                f"{name}{joint}communication_bytes": each.communication_bytes,
                f"{name}{joint}exposed_s": sum(each.exposed_s),
            }
        rows.append(row)
    return pd.DataFrame(rows)

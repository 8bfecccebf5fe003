"""Tables of timed layers: repeated measurements of passes, by layer and place."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from des.base.text_files import read_text
from des.world.files.profile_files import csv_rows, profile_point
from des.world.layer_profiles import MeasuredPasses, PointPlace, ProfiledLayer, ProfilePoint

_NO_POINT = ("repeat",)
"""Columns of a table of timed layers that tell rows of one point apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedRow:
    """One measurement of one layer, and whether it includes the sums over a tensor group."""

    gpu: str
    exchanges: str
    point: ProfilePoint


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedPoint:
    """Times of one point, from one or several rows.

    ``spreads`` are distances of the quartiles of each pass in parts of its median; None where the
    times are no medians.
    """

    gpu: str
    exchanges: str
    point: ProfilePoint
    num_rows: int
    spreads: MeasuredPasses | None


def read_timed_rows(path: Path) -> list[TimedRow]:
    """Read a CSV whose columns are those of a profile, and ``repeat`` if there are several.

    Raises
    ------
    ValueError
        If the file cannot be read, or a row is no measurement; naming file, line and column.
    """
    text = read_text(path)
    if not text.strip():
        raise ValueError(f"{path}: must have a header and rows, got an empty file")
    try:
        return [_time_row(place, row) for place, row in csv_rows(text)]
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def _time_row(place: str, row: Mapping[str, object]) -> TimedRow:
    cells = {name: cell for name, cell in row.items() if name not in _NO_POINT}
    if "gpu" not in cells:
        raise ValueError(f"{place}: gpu must be given, got none")
    return TimedRow(
        gpu=str(cells["gpu"]).strip(),
        exchanges=str(cells.get("exchanges", "excluded")),
        point=profile_point(place, cells),
    )


def medians(rows: Sequence[TimedRow]) -> list[TimedPoint]:
    """Take the rows of each point together, in the order of their first rows.

    Raises
    ------
    ValueError
        If there is no row, or times of one GPU include sums over a tensor group in some rows alone.
    """
    if not rows:
        raise ValueError("a table must hold at least one timed layer, got none")
    words = {row.gpu: row.exchanges for row in rows}
    for row in rows:
        if row.exchanges != words[row.gpu]:
            raise ValueError(f"exchanges must be one word for all rows of {row.gpu}, got both")
    of_point: dict[tuple[str, str, ProfiledLayer, PointPlace], list[ProfilePoint]] = {}
    for row in rows:
        key = row.gpu, row.exchanges, row.point.layer, row.point.place
        of_point.setdefault(key, []).append(row.point)
    return [
        TimedPoint(
            gpu=gpu,
            exchanges=exchanges,
            point=_median_point(points),
            num_rows=len(points),
            spreads=_spreads(points),
        )
        for (gpu, exchanges, _, _), points in of_point.items()
    ]


def _median_point(points: Sequence[ProfilePoint]) -> ProfilePoint:
    forward_s, input_gradient_s, weight_gradient_s = (
        median(times) for times in zip(*(one.passes for one in points), strict=True)
    )
    return replace(
        points[0],
        forward_s=forward_s,
        input_gradient_s=input_gradient_s,
        weight_gradient_s=weight_gradient_s,
    )


def _spreads(points: Sequence[ProfilePoint]) -> MeasuredPasses:
    quartiles = np.percentile([one.passes for one in points], (25, 50, 75), axis=0)
    low, middle, high = (row.tolist() for row in quartiles)
    return MeasuredPasses(
        *((c - a) / b if b > 0.0 else 0.0 for a, b, c in zip(low, middle, high, strict=True))
    )


def quicker_though_larger(points: Sequence[TimedPoint]) -> Iterator[tuple[TimedPoint, TimedPoint]]:
    """Pairs of points of one layer of which the larger microbatch has the quicker forward pass."""
    ordered = sorted(points, key=lambda one: one.point.place)
    for index, smaller in enumerate(ordered):
        for larger in ordered[index + 1 :]:
            a, b = smaller.point, larger.point
            same = (smaller.gpu, a.layer, a.tensor, a.sequence) == (
                larger.gpu,
                b.layer,
                b.tensor,
                b.sequence,
            )
            if same and b.microbatch_size > a.microbatch_size and b.forward_s < a.forward_s:
                yield smaller, larger

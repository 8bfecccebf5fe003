"""Reading traces of links: a CSV table of figures by time."""

import csv
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TextIO

from des.base.checks import require_positive
from des.dynamics import LinkSeries, Replay

COLUMNS = ("time_s", "source", "target", "bandwidth_bytes_per_s", "latency_s")

_Row = tuple[str, str, float, float, float]


def read_link_trace(
    path: str | Path, *, longest_gap_s: float | None = None, holds_last: bool = False
) -> Replay:
    """Read a trace: one row for each link at each time, from time 0 on.

    Parameters
    ----------
    longest_gap_s
        Rows of a link that are further apart are a gap; None allows any distance.
    holds_last
        See `Replay`.

    Raises
    ------
    ValueError
        If the file cannot be read or is no such table; the message names the file, the line or
        link, the column, what is allowed and what came.
    """
    path = Path(path)
    if longest_gap_s is not None:
        require_positive(str(path), "longest_gap_s", longest_gap_s)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            series = _series(list(_rows(file)))
            _check_gaps(series, longest_gap_s)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ValueError(f"{path}: trace cannot be read: {reason}") from error
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return Replay(name=str(path), series=series, holds_last=holds_last)


def _rows(file: TextIO) -> Iterator[_Row]:
    """Source, target, time, bandwidth and latency of each row."""
    reader = csv.DictReader(file, strict=True)
    header = reader.fieldnames or []
    if sorted(header) != sorted(COLUMNS):
        raise ValueError(f"columns must be {','.join(COLUMNS)}; got {','.join(header) or 'none'}")
    for row in reader:
        place = f"line {reader.line_num}"
        if None in row or None in row.values():
            raise ValueError(f"{place}: must have {len(COLUMNS)} fields, one per column")
        yield (
            row["source"],
            row["target"],
            _number(place, "time_s", row["time_s"]),
            _number(place, "bandwidth_bytes_per_s", row["bandwidth_bytes_per_s"]),
            _number(place, "latency_s", row["latency_s"]),
        )


def _number(place: str, column: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"{place}: {column} must be a number, got {text!r}") from error


def _series(rows: list[_Row]) -> tuple[LinkSeries, ...]:
    """Rows by link, each in the order of the file."""
    of_link: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for source, target, *figures in rows:
        time_s, bandwidth, latency_s = figures
        of_link.setdefault((source, target), []).append((time_s, bandwidth, latency_s))
    series = []
    for (source, target), entries in of_link.items():
        times_s, bandwidths, latencies_s = zip(*entries, strict=True)
        series.append(
            LinkSeries(
                source=source,
                target=target,
                times_s=times_s,
                bandwidths_bytes_per_s=bandwidths,
                latencies_s=latencies_s,
            )
        )
    return tuple(series)


def _check_gaps(series: tuple[LinkSeries, ...], longest_gap_s: float | None) -> None:
    if longest_gap_s is None:
        return
    for one in series:
        for earlier_s, later_s in pairwise(one.times_s):
            if later_s - earlier_s > longest_gap_s:
                raise ValueError(
                    f"{one}: times_s must be at most {longest_gap_s!r} s apart, got a gap from "
                    f"{earlier_s!r} to {later_s!r}"
                )

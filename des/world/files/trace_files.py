"""Reading traces of links: a CSV table of figures by time."""

import csv
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TextIO

from des.base.checks import prefixed_errors, require_known, require_positive
from des.base.quantities import BANDWIDTH_BYTES_PER_S, TIME_S, parse_quantity
from des.dynamics import LinkSeries, Replay

COLUMNS = MappingProxyType(
    {
        "time": "time_s",
        "source": "source",
        "target": "target",
        "bandwidth": "bandwidth_bytes_per_s",
        "latency": "latency_s",
    }
)
"""Names of the columns by what they hold."""

_UNITS = {"time": TIME_S, "bandwidth": BANDWIDTH_BYTES_PER_S, "latency": TIME_S}

_Row = tuple[str, str, float, float, float]


def read_link_trace(
    path: str | Path,
    *,
    columns: Mapping[str, str] = MappingProxyType({}),
    longest_gap_s: float | None = None,
    holds_last: bool = False,
) -> Replay:
    """Read a trace: one row for each link at each time, from time 0 on.

    Parameters
    ----------
    columns
        Names of the columns of another table by the keys of `COLUMNS`; its figures may have units,
        and other columns mean nothing.
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
    for key in columns:
        require_known(f"{path}: columns: unknown", key, COLUMNS)
    if longest_gap_s is not None:
        require_positive(str(path), "longest_gap_s", longest_gap_s)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            series = _series(list(_rows(file, columns)))
            _check_gaps(series, longest_gap_s)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ValueError(f"{path}: trace cannot be read: {reason}") from error
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return Replay(name=str(path), series=series, holds_last=holds_last)


def _rows(file: TextIO, columns: Mapping[str, str]) -> Iterator[_Row]:
    """Source, target, time, bandwidth and latency of each row."""
    reader = csv.DictReader(file, strict=True)
    header, names = reader.fieldnames or [], COLUMNS | columns
    missing = [name for name in names.values() if name not in header]
    if missing or (not columns and len(header) > len(names)):
        raise ValueError(
            f"columns must be {','.join(names.values())}; got {','.join(header) or 'none'}"
            + (f", without {','.join(missing)}" if missing else "")
        )
    for row in reader:
        place = f"line {reader.line_num}"
        if None in row or None in row.values():
            raise ValueError(f"{place}: must have {len(header)} fields, one per column")
        figures = {key: _number(place, names[key], row[names[key]], key) for key in _UNITS}
        yield (
            row[names["source"]],
            row[names["target"]],
            figures["time"],
            figures["bandwidth"],
            figures["latency"],
        )


def _number(place: str, column: str, text: str, key: str) -> float:
    """Read a number, or a quantity with its unit."""
    try:
        return float(text)
    except ValueError:
        with prefixed_errors(f"{place}: {column} must be a number, got {text!r}; "):
            return parse_quantity(text, _UNITS[key])


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

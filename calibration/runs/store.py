"""Runs of the reference simulators in one file, so that none is ever repeated."""

from __future__ import annotations

from des.base.extras import require_extra
from des.base.csv_text import frame_csv
import json
import math
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from calibration.cases.case import Measurement
from calibration.cases.case_key import RunKey
from des.base.atomic_write import write_atomically
from des.base.checks import require_count, require_non_negative
from des.base.lazy import lazy_imports
from des.base.store_file import StoreKind, create_if_empty, opened, seal
from des.base.strict_json import parse_json
from des.base.checks import system_errors

with lazy_imports(__name__):
    import pandas as pd


MetaValue = str | int | float | bool | None
"""Values of a note about a run."""


class _Row(NamedTuple):
    """A run as it is stored; ``created_s`` is in Unix time, ``seal`` a digest of all before it."""

    key: str
    case_digest: str
    backend: str
    aggregation: str | None
    version: str
    created_s: float
    measurement: str
    meta: str
    seal: str


_COLUMNS = ", ".join(_Row._fields)
_KIND = StoreKind(
    table="""
    CREATE TABLE runs (
        key TEXT PRIMARY KEY, case_digest TEXT NOT NULL, backend TEXT NOT NULL, aggregation TEXT,
        version TEXT NOT NULL, created_s REAL NOT NULL, measurement TEXT NOT NULL,
        meta TEXT NOT NULL, seal TEXT NOT NULL
    )
""",
    application_id=0x45575243,  # "EWRC"
    holds="runs",
)
_FRAME_COLUMNS = (*_Row._fields[:6], "makespan_s", "communication_bytes", "exposed_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A file of runs, each with its key; use `open`.

    Any number of processes may read and write at once: every call opens the file, does one
    transaction and closes it, so a store may also be sent to other processes. Measurements come
    back to the last bit. All errors are ValueErrors that name the file: one that is damaged, full,
    read-only, of a newer version, or no store.
    """

    path: Path

    @classmethod
    def open(cls, path: str | Path, *, must_exist: bool = False) -> Store:
        """Open the store at a path; make an empty one where there is none, unless it must exist.

        Raises
        ------
        ValueError
            If it cannot be opened or made, or the file is something else or of a newer version.
        """
        store = cls(path=Path(path))
        if not must_exist:
            create_if_empty(store.path, _KIND)
        with opened(store.path, _KIND):
            return store

    def get(self, key: RunKey) -> Measurement | None:
        """Return what a run gave; None if it was never run."""
        with opened(self.path, _KIND) as connection:
            row = self._row_of(connection, key)
        return None if row is None else self._measurement(row)

    def put(
        self,
        key: RunKey,
        measurement: Measurement,
        meta: Mapping[str, MetaValue] | None = None,
        *,
        created_s: float | None = None,
    ) -> None:
        """Keep what a run gave, unless it is there already: the first one stays.

        Parameters
        ----------
        key, measurement
            The run and its result.
        meta
            Notes on it, which become columns of `rows`.
        created_s
            Time of the run, in Unix time; now by default. [s]

        Raises
        ------
        ValueError
            If the same run is there with another result, a note has the name of a column or is no
            plain value, or the file cannot be written.
        """
        row = _sealed(key, measurement, meta or {}, time.time() if created_s is None else created_s)
        marks = ", ".join("?" * len(row))
        with opened(self.path, _KIND) as connection:
            connection.execute("BEGIN IMMEDIATE")
            kept = self._row_of(connection, key)
            if kept is None:
                connection.execute(f"INSERT INTO runs ({_COLUMNS}) VALUES ({marks})", row)
            connection.execute("COMMIT")
        if kept is not None and self._measurement(kept) != measurement:
            raise ValueError(
                f"store {self.path}: run {kept.key[:16]} must give what it gave before, "
                f"{self._measurement(kept)}; got {measurement}"
            )

    def rows(self) -> pd.DataFrame:
        """All runs, oldest first: their keys, measurements and notes.

        ``created_s`` is in Unix time, ``exposed_s`` holds tuples. Runs without a note of some name
        have none in its column.
        """
        with opened(self.path, _KIND) as connection:
            found = connection.execute(f"SELECT {_COLUMNS} FROM runs ORDER BY created_s, key")
            rows = [self._row(values) for values in found]
        records: list[dict[str, object]] = []
        for row in rows:
            measurement = self._measurement(row)
            figures = {
                "makespan_s": measurement.makespan_s,
                "communication_bytes": measurement.communication_bytes,
                "exposed_s": measurement.exposed_s,
            }
            notes = parse_json(row.meta)
            assert isinstance(notes, dict)  # sealed
            records.append(dict(zip(_Row._fields[:6], row, strict=False)) | figures | notes)
        frame = pd.DataFrame(records)
        return frame if records else pd.DataFrame(columns=list(_FRAME_COLUMNS))

    def prune(
        self,
        *,
        created_before_s: float | None = None,
        backend: str | None = None,
        keep_newest: int | None = None,
    ) -> int:
        """Remove the runs to which all that is given applies, and return how many.

        Parameters
        ----------
        created_before_s
            Only runs from before this Unix time. [s]
        backend
            Only runs of this backend.
        keep_newest
            Only runs that are not among this many newest ones (of the backend, where one is given).

        Raises
        ------
        ValueError
            If nothing is given: that would remove all.
        """
        if created_before_s is None and backend is None and keep_newest is None:
            raise ValueError(
                "store: prune must be given an age, a backend or a number to keep, got nothing"
            )
        if created_before_s is not None:
            require_non_negative("store", "created_before_s", created_before_s)
        if keep_newest is not None and keep_newest != 0:
            require_count("store", "keep_newest", keep_newest)
        with opened(self.path, _KIND) as connection:
            removed = connection.execute(
                "DELETE FROM runs WHERE key IN (SELECT key FROM runs"
                " WHERE :backend IS NULL OR backend = :backend"
                " ORDER BY created_s DESC, key DESC LIMIT -1 OFFSET :kept)"
                " AND (:before_s IS NULL OR created_s < :before_s)",
                {"backend": backend, "kept": keep_newest or 0, "before_s": created_before_s},
            )
            return removed.rowcount

    def export(self, path: str | Path) -> None:
        """Write `rows` as CSV or Parquet, by the ending of the path; whole or not at all.

        ``exposed_s`` becomes the text of a JSON list. Floats come back to the last bit.

        Raises
        ------
        ValueError
            If the ending is another, the package for it is missing, or the file cannot be written.
        """
        target = Path(path)
        if target.suffix not in (".csv", ".parquet"):
            raise ValueError(f"store: export must end in .csv or .parquet, got {str(target)!r}")
        if target.suffix == ".parquet":
            require_extra(f"store: export to {target}, unlike to .csv,", "pyarrow")
        frame = self.rows()
        frame["exposed_s"] = [json.dumps(exposed_s) for exposed_s in frame["exposed_s"]]
        if target.suffix == ".csv":
            content = frame_csv(frame).encode()
        else:
            content = frame.to_parquet(engine="pyarrow", index=False)
        with system_errors(f"store: {target} cannot be written"):
            write_atomically(target, content)

    def _row_of(self, connection: sqlite3.Connection, key: RunKey) -> _Row | None:
        found = connection.execute(f"SELECT {_COLUMNS} FROM runs WHERE key = ?", (key.digest,))
        values = found.fetchone()
        return None if values is None else self._row(values)

    def _row(self, values: tuple[object, ...]) -> _Row:
        """Take a row as it was written; in a damaged file any cell may be of any type."""
        *cells, written = values
        if seal(tuple(cells)) != written:
            raise ValueError(
                f"store {self.path}: run {str(values[0])[:16]!r} must be as it was written, got "
                "another content; the file is damaged: remove it, and its runs will be made again"
            )
        return _Row(*values)  # type: ignore[arg-type] # sealed

    def _measurement(self, row: _Row) -> Measurement:
        """Read the result of a run."""
        content = parse_json(row.measurement)
        assert isinstance(content, dict)  # sealed
        return Measurement(**content | {"exposed_s": tuple(content["exposed_s"])})


def _sealed(
    key: RunKey, measurement: Measurement, meta: Mapping[str, MetaValue], created_s: float
) -> _Row:
    require_non_negative("store", "created_s", created_s)
    for name, value in meta.items():
        is_plain = isinstance(value, str | int | float | None)
        if isinstance(value, float) and not math.isfinite(value):
            is_plain = False
        if name in _FRAME_COLUMNS or not is_plain:
            raise ValueError(
                f"store: meta must hold texts and finite numbers under names other than "
                f"{', '.join(_FRAME_COLUMNS)}; got {name!r}: {value!r}"
            )
    content = {
        "makespan_s": float(measurement.makespan_s),
        "communication_bytes": float(measurement.communication_bytes),
        "exposed_s": [float(each_s) for each_s in measurement.exposed_s],
    }
    head = (key.digest, key.case_digest, key.backend, key.aggregation, key.version)
    texts = (json.dumps(content, allow_nan=False), json.dumps(dict(meta), allow_nan=False))
    values = (*head, 0.0 + created_s, *texts)  # SQLite knows no -0.0
    return _Row(*values, seal=seal(values))

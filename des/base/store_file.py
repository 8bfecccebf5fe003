"""The SQLite file of a store: opened for one transaction, and refused by one clear error."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

VERSION = 1
"""Version of the tables in the file."""

MOST_CELL_BYTES = 16 * 2**20
"""Largest text of a store; that of a run with a thousand stages has some kilobytes."""

_BUSY_S = 60.0
"""Time a writer waits for others; a write takes milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKind:
    """Kind of a store: its one table, its number in the header of the file, its content."""

    table: str
    application_id: int
    holds: str


def create_if_empty(path: Path, kind: StoreKind) -> None:
    """Make the file with its table, unless it has some already.

    SQLite's rollback journal is kept, not its write-ahead log: the store is then one file, which
    can be copied, lie on a network drive, and be read where it must not be written.

    Raises
    ------
    ValueError
        If the file cannot be opened or written.
    """
    with connected(path, "rwc", kind.holds) as connection:
        if _has_tables(connection):
            return
        connection.execute("PRAGMA auto_vacuum = FULL")  # what is removed gives its room back
        connection.execute("BEGIN IMMEDIATE")
        if not _has_tables(connection):  # else another process was quicker
            connection.execute(kind.table)
            connection.execute(f"PRAGMA application_id = {kind.application_id}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")


def seal(values: tuple[object, ...]) -> str:
    """Digest of the cells of a row, stored with them: in a damaged file they may be anything."""
    return hashlib.sha256(repr(values).encode()).hexdigest()


@contextmanager
def opened(path: Path, kind: StoreKind) -> Iterator[sqlite3.Connection]:
    """Open a file that must be there, and make sure that it is a store that we can read.

    It holds the table and nothing else: what another file calls a table may be a view that has no
    end, and other tables may run code of theirs.

    Raises
    ------
    ValueError
        If it cannot be opened, is something else or of a newer version, or if anything fails
        that is done with the connection.
    """
    holds = kind.holds
    with connected(path, "rw", holds) as connection:
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application_id != kind.application_id:
            raise ValueError(f"store {path}: must be a store of {holds}, got another SQLite file")
        if version > VERSION:
            raise ValueError(
                f"store {path}: must be of version {VERSION}, got {version}, which a newer "
                "release has written; use that release or another file"
            )
        found = connection.execute(
            "SELECT type, substr(sql, 1, 2000) FROM sqlite_master"
        ).fetchall()
        made = {(kind, " ".join(str(text).split())) for kind, text in found if text is not None}
        if version == VERSION and made != {("table", " ".join(kind.table.split()))}:
            raise ValueError(
                f"store {path}: is damaged, as it must hold the table of {holds} and no other; "
                f"remove it, and its {holds} will be made again"
            )
        yield connection


@contextmanager
def connected(path: Path, mode: Literal["rw", "rwc"], holds: str) -> Iterator[sqlite3.Connection]:
    """Connect to a file, made if missing under ``rwc``; what was not committed is rolled back.

    Raises
    ------
    ValueError
        If SQLite fails, naming the file and the reason.
    """
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None)
        with closing(connection):
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_CELL_BYTES)
            yield connection
    except sqlite3.Error as error:
        raise ValueError(f"store {path}: {_reason(error, holds)}") from error


def _has_tables(connection: sqlite3.Connection) -> bool:
    (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return bool(count)


_REASONS = {
    "SQLITE_BUSY": f"is in use by other processes for more than {_BUSY_S:g} s",
    "SQLITE_CANTOPEN": "cannot be opened; it must be a file, in a folder that exists",
    "SQLITE_CORRUPT": "is damaged; remove it, and its {holds} will be made again",
    "SQLITE_FULL": "cannot be written, as the disk is full",
    "SQLITE_IOERR": "cannot be read or written by the system; the disk may be full",
    "SQLITE_NOTADB": "must be a store of {holds}, got another or a damaged file",
    "SQLITE_READONLY": "cannot be written, as the file or its folder is read-only",
}
"""User messages for SQLite's errors, by the start of their names."""


def _reason(error: sqlite3.Error, holds: str) -> str:
    name = getattr(error, "sqlite_errorname", "")  # Python's own errors have none
    for start, reason in _REASONS.items():
        if name.startswith(start):
            return f"{reason.format(holds=holds)} ({error})"
    return f"cannot be used, the file may be damaged ({error})"

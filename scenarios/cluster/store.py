"""State of a scheduler: texts by key, written together, of one scheduler at a time."""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

_OURS = 0x45574331
"""Number by which SQLite files of ours are known."""


class StateStore(Protocol):
    """Texts by key. A write is on the disk, as a whole, before it returns."""

    def read(self) -> dict[str, str]:
        """All texts."""

    def write(self, changes: Mapping[str, str]) -> None:
        """Write some texts, all of them or none."""

    def close(self) -> None:
        """Let another scheduler have it."""


class SqliteStore:
    """State in a SQLite file, which this process locks until it ends, also by kill -9."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.exists():
            path.touch(mode=0o600)
        self._file = sqlite3.connect(path, timeout=0.0, isolation_level=None)
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._file.close()
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                raise ValueError(f"{path}: another scheduler runs on this state") from error
            raise ValueError(f"{path}: cannot hold the state of a scheduler: {error}") from error

    def _prepare(self) -> None:
        """Lock the file, after a check that it is ours: other files stay as they are."""
        self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
        (number,) = self._file.execute("PRAGMA application_id").fetchone()
        (tables,) = self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if number != _OURS and tables:
            raise sqlite3.DatabaseError("it holds tables of another program")
        self._path.chmod(0o600)  # words of jobs may be secrets; the log of writes gets its mode
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = FULL")
        self._file.execute("BEGIN EXCLUSIVE")
        self._file.execute(f"PRAGMA application_id = {_OURS}")
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
        )
        self._file.execute("COMMIT")

    def read(self) -> dict[str, str]:
        """All texts."""
        return dict(self._file.execute("SELECT key, value FROM state"))

    def write(self, changes: Mapping[str, str]) -> None:
        """Write some texts, all of them or none."""
        try:
            self._file.execute("BEGIN")
            self._file.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", changes.items())
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            raise OSError(f"{self._path}: cannot be written: {error}") from error

    def close(self) -> None:
        """Let another scheduler have it."""
        self._file.close()

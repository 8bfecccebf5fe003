"""A file of values by key, so that slow computations are made once."""

import hashlib
import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from des.base.store_file import StoreKind, create_if_empty, opened, seal
from des.base.strict_json import parse_json

_TABLE = "CREATE TABLE kept (key TEXT PRIMARY KEY, content TEXT NOT NULL, seal TEXT NOT NULL)"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedStore:
    """A file of lists of numbers by text keys; use `open`.

    Any number of processes may read and write at once, see `des.base.store_file`. Numbers come
    back to the last bit. All errors are ValueErrors that name the file.
    """

    path: Path
    kind: StoreKind

    @classmethod
    def open(cls, path: Path, *, holds: str, application_id: int) -> Self:
        """Open the store at a path; make an empty one where there is none.

        Raises
        ------
        ValueError
            If it cannot be opened or made, or the file is something else or of a newer version.
        """
        kind = StoreKind(table=_TABLE, application_id=application_id, holds=holds)
        store = cls(path=path, kind=kind)
        create_if_empty(path, kind)
        with opened(path, kind):
            return store

    def get(self, key: str) -> list[float] | None:
        """Numbers of a key; None if there are none.

        Raises
        ------
        ValueError
            If they are not as they were written.
        """
        digest = _digest(key)
        with opened(self.path, self.kind) as connection:
            found = _row_of(connection, digest)
        if found is None:
            return None
        content, written = found
        if seal((digest, content)) != written:
            raise ValueError(
                f"store {self.path}: entry {digest[:16]!r} must be as it was written, got another "
                f"content; the file is damaged: remove it, and its {self.kind.holds} will be made "
                "again"
            )
        numbers = parse_json(content)
        assert isinstance(numbers, list)  # sealed
        return [float(str(number)) for number in numbers]

    def put(self, key: str, numbers: list[float]) -> None:
        """Keep numbers, unless the key has some already: the first ones stay."""
        digest, content = _digest(key), json.dumps(numbers, allow_nan=False)
        row = (digest, content, seal((digest, content)))
        with opened(self.path, self.kind) as connection:
            connection.execute("INSERT OR IGNORE INTO kept VALUES (?, ?, ?)", row)


def _row_of(connection: sqlite3.Connection, digest: str) -> tuple[str, str] | None:
    found = connection.execute("SELECT content, seal FROM kept WHERE key = ?", (digest,))
    row: tuple[str, str] | None = found.fetchone()
    return row


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()

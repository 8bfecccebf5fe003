"""Output files of a command: rows first, then pages and pictures; all of a kind or none."""

import json
from collections.abc import Mapping
from pathlib import Path

from des.base.atomic_write import write_together
from des.base.document import plain_json
from scenarios.frame.run_folder import run_record

RESULT = "result.json"
"""File with the settings and the figures of a command that may write into one folder again."""


def result_file(settings: Mapping[str, object], **content: object) -> dict[str, bytes]:
    """Return result.json: settings and versions, which ``--config`` takes, and the results."""
    said = run_record(settings) | {name: plain_json(value) for name, value in content.items()}
    return {RESULT: (json.dumps(said, indent=2, allow_nan=False) + "\n").encode()}


_SHOWN = (".html", ".png", ".pdf", ".svg")
"""Endings of pages and pictures."""


def require_no_run(folder: Path) -> None:
    """Refuse the folder of a run: it has a ``config.json`` and files that are not to be replaced.

    Raises
    ------
    ValueError
        If the folder has one.
    """
    if (folder / "config.json").exists():
        raise ValueError(
            f"--out {folder}: must not be a run folder, got one that has a config.json; "
            "choose another --out"
        )


def write_files(folder: Path, files: dict[str, bytes]) -> list[Path]:
    """Write all rows or none, then all pages and pictures or none; return where the files are.

    If the pages cannot be written, the rows are kept.

    Raises
    ------
    ValueError
        If the folder cannot be made or written, or is that of a run.
    """
    require_no_run(folder)
    places = {folder / name: content for name, content in files.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for is_shown in (False, True):
            kind = {at: one for at, one in places.items() if (at.suffix in _SHOWN) is is_shown}
            write_together(kind)
    except OSError as error:
        raise ValueError(f"{error.filename}: cannot be written: {error.strerror}") from error
    return list(places)

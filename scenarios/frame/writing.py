"""Output files of a command: all or none."""

import json
from collections.abc import Mapping
from pathlib import Path

from des.base.atomic_write import write_together
from des.base.document import plain_json
from scenarios.frame.run_folder import run_record

RESULT = "result.json"
"""File with the settings and the figures of a command that may write into one folder again."""


def result_file(settings: Mapping[str, object], **content: object) -> dict[str, bytes]:
    """Return result.json: settings and versions, which ``--config`` takes, and what was found."""
    said = run_record(settings) | {name: plain_json(value) for name, value in content.items()}
    return {RESULT: (json.dumps(said, indent=2, allow_nan=False) + "\n").encode()}


def write_files(folder: Path, files: dict[str, bytes]) -> list[Path]:
    """Write all files or none and return where they are.

    Raises
    ------
    ValueError
        If the folder cannot be made or written.
    """
    if (folder / "config.json").exists():
        raise ValueError(f"--out {folder}: must not be the folder of a training run")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_together({folder / name: content for name, content in files.items()})
    except OSError as error:
        raise ValueError(f"{error.filename}: cannot be written: {error.strerror}") from error
    return [folder / name for name in files]

"""Output files of a command: all or none."""

from pathlib import Path

from des.base.atomic_write import write_together


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

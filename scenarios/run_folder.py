"""The folder of one run: its paths, what is needed to repeat it, and writes that never tear."""

import io
import itertools
import json
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import yaml

_CHECKOUT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """Where one run keeps its files; `create` makes one and `open_existing` resumes one."""

    path: Path

    @classmethod
    def create(cls, path: Path) -> "RunFolder":
        """Make the folder, parents included.

        Raises
        ------
        ValueError
            If the folder already holds files, or cannot be made or written.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            is_empty = not any(path.iterdir())
        except OSError as error:
            raise ValueError(f"run folder {path}: cannot be made: {error.strerror}") from error
        if not is_empty:
            raise ValueError(
                f"run folder {path}: already holds files; continue that run with --resume "
                "or choose another --name"
            )
        _check_writable(path)
        return cls(path=path)

    @classmethod
    def open_existing(cls, path: Path) -> "RunFolder":
        """Open the folder of an earlier run, to resume or to read it.

        Raises
        ------
        ValueError
            If the folder or its config.json is missing, corrupt or cannot be written.
        """
        if not path.is_dir():
            raise ValueError(f"run folder {path}: does not exist, so there is no run to resume")
        folder = cls(path=path)
        folder.read_config()
        _check_writable(path)
        return folder

    @property
    def config_json(self) -> Path:
        """Configuration, package versions and source revision."""
        return self.path / "config.json"

    @property
    def metrics_csv(self) -> Path:
        """One row per update."""
        return self.path / "metrics.csv"

    @property
    def checkpoint_pt(self) -> Path:
        """Where training continues."""
        return self.path / "checkpoint.pt"

    @property
    def evaluation_csv(self) -> Path:
        """One row per draw and planner."""
        return self.path / "evaluation.csv"

    @property
    def trace_json(self) -> Path:
        """Timeline of one simulated iteration."""
        return self.path / "trace.json"

    @property
    def learning_curve_png(self) -> Path:
        """Figure of the metrics."""
        return self.path / "learning_curve.png"

    @property
    def report_html(self) -> Path:
        """Report for people."""
        return self.path / "report.html"

    @property
    def tensorboard(self) -> Path:
        """Event files, the same numbers as the metrics."""
        return self.path / "tensorboard"

    def write_config(self, config: Mapping[str, object]) -> None:
        """Record everything needed to repeat the run, and nothing that differs when it repeats.

        Parameters
        ----------
        config
            Plain values, as `scenarios.config.to_dict` returns them.
        """
        record = {
            "config": dict(config),
            "versions": package_versions(),
            "source_revision": source_revision(),
        }
        write_json(self.config_json, record)

    def read_config(self) -> dict[str, object]:
        """Return the configuration that `write_config` recorded.

        Raises
        ------
        ValueError
            If config.json is missing or corrupt.
        """
        record = read_json(self.config_json)
        config = record.get("config") if isinstance(record, dict) else None
        if not isinstance(config, dict):
            raise ValueError(f"{self.config_json}: must hold a mapping named config")
        return config


def package_versions() -> dict[str, str | None]:
    """Return the versions that results depend on; None marks a package not installed."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in ("eastwest", "numpy", "torch"):
        found = next(iter(metadata.distributions(name=package)), None)
        versions[package] = found.version if found else None
    return versions


def source_revision(checkout: Path = _CHECKOUT) -> str | None:
    """Return the git revision of our source, with ``-dirty`` after local changes.

    None if the source is not a git checkout of its own, has no commit, or git is missing.
    """
    git = shutil.which("git")
    if git is None or not (checkout / ".git").exists():
        return None
    command = [git, "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=40"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else None


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary neighbour of ``path`` that takes its place if the block succeeds.

    A reader sees the old file or the new one, never half of one; if the block fails the old file
    stays and the neighbour is removed.
    """
    neighbour = path.with_name(f".{path.name}.tmp")
    try:
        with neighbour.open("wb") as file:
            yield file
        neighbour.replace(path)
    finally:
        neighbour.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file atomically."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: object) -> None:
    """Write a JSON file atomically.

    Raises
    ------
    ValueError
        If a number is NaN or infinite, which JSON does not have.
    """
    try:
        text = json.dumps(value, indent=2, allow_nan=False)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    write_text(path, text + "\n")


def write_csv(path: Path, frame: pd.DataFrame) -> None:
    """Write a CSV file atomically; `read_csv` returns the same floats."""
    write_text(path, frame.to_csv(index=False, lineterminator="\n"))


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV file, each float to the last bit.

    Raises
    ------
    ValueError
        If the file cannot be read or is not a table.
    """
    text = read_text(path)
    try:
        return pd.read_csv(
            io.StringIO(text),
            keep_default_na=False,  # a planner may be called none
            na_values=["", "nan"],
        )
    except ValueError as error:
        raise ValueError(f"{path}: not a table: {error}") from error


def read_text(path: Path) -> str:
    """Read a UTF-8 file.

    Raises
    ------
    ValueError
        If it cannot be read or is not UTF-8, naming the file.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: cannot be read: not UTF-8 text") from error


def read_json(path: Path) -> object:
    """Read a JSON file.

    Raises
    ------
    ValueError
        If it cannot be read or is not JSON, naming the file and the line.
    """
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not JSON: {error.msg}") from error


def read_yaml(path: Path) -> object:
    """Read a YAML file, in which 3e-4 is a number and a repeated key is an error.

    Raises
    ------
    ValueError
        If it cannot be read or is not YAML, naming the file and the line.
    """
    text = read_text(path)
    try:
        root = yaml.compose(text, Loader=_YamlLoader)
        loaded = yaml.load(text, Loader=_YamlLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"{path}, line {line}: not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path}: not YAML: {error}") from error
    keys = [key for key, _ in root.value] if isinstance(root, yaml.MappingNode) else []
    for earlier, later in itertools.combinations(keys, 2):
        if earlier.value == later.value:  # PyYAML lets the last one win silently
            line = later.start_mark.line + 1
            raise ValueError(f"{path}, line {line}: {later.value} is given twice")
    return loaded


class _YamlLoader(yaml.SafeLoader):
    """PyYAML takes 3e-4 for text, as YAML 1.1 had it."""


_YamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def _check_writable(path: Path) -> None:
    """Find out now, not when the first result is ready."""
    try:
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise ValueError(f"run folder {path}: cannot be written: {error.strerror}") from error

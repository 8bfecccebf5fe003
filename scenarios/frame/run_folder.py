"""The folder of one run: its paths, what is needed to repeat it, and writes that never tear."""

import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from des.base.command import UsageError
from scenarios.frame.files import read_json, write_bytes, write_json

_CHECKOUT = Path(__file__).resolve().parents[2]


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
                "or choose another --out"
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

    def keep(self, original: Path, stem: str) -> str:
        """Keep a copy of an input file, so that the run can be repeated; return its name."""
        name = f"{stem}{original.suffix}"
        write_bytes(self.path / name, original.read_bytes())
        return name

    @property
    def metrics_csv(self) -> Path:
        """One row per update."""
        return self.path / "metrics.csv"

    @property
    def checkpoint_pt(self) -> Path:
        """Where training continues."""
        return self.path / "checkpoint.pt"

    @property
    def calibrations_csv(self) -> Path:
        """One row per calibration while training."""
        return self.path / "calibrations.csv"

    @property
    def calibration_store(self) -> Path:
        """Runs of the reference simulator."""
        return self.path / "calibration.sqlite"

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
            Plain values, as `scenarios.frame.config.to_dict` returns them.
        """
        record = {
            "config": dict(config),
            "versions": package_versions(),
            "source_revision": source_revision(),
        }
        write_json(self.config_json, record)

    def require_begun_with(
        self, record: Mapping[str, object], asked: Mapping[str, object], prog: str
    ) -> None:
        """Refuse flags that contradict those that the run was begun with, its ``record``.

        Raises
        ------
        UsageError
            Naming the first one, by the alphabet, and what it must be.
        """
        for name in sorted(asked):
            if asked[name] != record.get(name):
                raise UsageError(
                    f"{prog}: with --resume, {name} must be {record.get(name)!r} as in "
                    f"{self.config_json}, got {asked[name]!r}"
                )

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


def _check_writable(path: Path) -> None:
    """Find out now, not when the first result is ready."""
    try:
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise ValueError(f"run folder {path}: cannot be written: {error.strerror}") from error

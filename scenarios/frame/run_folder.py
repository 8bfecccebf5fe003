"""The folder of one run: its paths, what is needed to repeat it, and writes that never tear."""

import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

from des.base.atomic_write import finish_together, target_of, write_together
from des.base.checks import system_errors
from des.base.command import UsageError
from des.base.machine import cpu_name, usable_cores
from des.base.text_files import read_json
from scenarios.frame.files import json_bytes
from scenarios.frame.run_lock import LOCK, lock_folder

INPUTS = ("network", "corrections", "loads")
"""Stems of the copies of input files that a run folder may hold."""

_CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """Folder of one run with the paths of its files.

    `created` makes one, `opened` resumes one and `begun_or_resumed` does either, each with the lock
    of the folder. ``config.json`` is the first file of a run: a folder without it was never begun.
    """

    path: Path

    @classmethod
    @contextmanager
    def created(cls, path: Path, config: dict[str, object] | None = None) -> Iterator["RunFolder"]:
        """Make the folder as `create` and hold its lock; record the ``config`` where it is given.

        Raises
        ------
        ValueError
            As `create`, or if another process uses the folder.
        """
        _made(path)
        _check_writable(path)
        with lock_folder(path):
            folder = cls.create(path)
            for entry in path.iterdir():
                if target_of(entry) is not None:  # of a run that was killed before it began
                    entry.unlink()
            if config is not None:
                folder.write_config(config)
            yield folder

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator["RunFolder"]:
        """Open the folder of an earlier run as `open_existing`, and hold its lock.

        Raises
        ------
        ValueError
            As `open_existing`, or if another process uses the folder.
        """
        _require_folder(path)
        _check_writable(path)
        with lock_folder(path):
            folder = cls.open_existing(path)
            _finish_inputs(path)
            yield folder

    @classmethod
    @contextmanager
    def begun_or_resumed(
        cls,
        path: Path,
        settings: Mapping[str, object],
        prog: str,
        *,
        resume: bool,
        noted: Mapping[str, object] = MappingProxyType({}),
        unrecorded: Mapping[str, object] = MappingProxyType({}),
    ) -> Iterator["RunFolder"]:
        """Make the folder of a run, or with ``resume`` open that of the same run; hold its lock.

        Parameters
        ----------
        settings
            Plain values that determine the results: recorded, and the same on ``resume``.
        noted
            Further plain values to record, which may change on ``resume``.
        unrecorded
            Values of settings that older runs have not recorded.

        Errors are those of `created`, `opened` and `require_begun_with`.
        """
        if not resume:
            with cls.created(path, {**noted, **settings}) as folder:
                yield folder
            return
        with cls.opened(path) as folder:
            folder.require_begun_with({**unrecorded, **folder.read_config()}, settings, prog)
            yield folder

    @classmethod
    def create(cls, path: Path) -> "RunFolder":
        """Make the folder, parents included.

        Raises
        ------
        ValueError
            If the folder already holds files, or cannot be made or written.
        """
        if _made(path):
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
            If the folder or its config.json is missing, corrupt or cannot be written; one without
        config.json was never begun, and can be.
        """
        _require_folder(path)
        folder = cls(path=path)
        if not folder.config_json.exists():
            raise ValueError(
                f"run folder {path}: holds no run, as {folder.config_json} is missing; begin one "
                "there by the same command without --resume"
            )
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
        """Checkpoint from which training continues."""
        return self.path / "checkpoint.safetensors"

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
    def report_html(self) -> Path:
        """Report for people."""
        return self.path / "report.html"

    @property
    def tensorboard(self) -> Path:
        """Event files, the same numbers as the metrics."""
        return self.path / "tensorboard"

    def write_config(
        self, config: Mapping[str, object], inputs: Mapping[str, Path] | None = None
    ) -> None:
        """Record everything needed to repeat the run, and nothing that differs when it repeats.

        Parameters
        ----------
        config
            Plain values, as `des.base.flags.to_dict` returns them.
        inputs
            Input files to keep copies of, by stems among `INPUTS`; a copy keeps the suffix.
        """
        copies = {
            self.path / f"{stem}{original.suffix}": original.read_bytes()
            for stem, original in (inputs or {}).items()
        }
        config_json = self.config_json
        write_together({config_json: json_bytes(config_json, run_record(config)), **copies})

    def require_begun_with(
        self, record: Mapping[str, object], given: Mapping[str, object], prog: str
    ) -> None:
        """Refuse flags that contradict those that the run was begun with, its ``record``.

        Raises
        ------
        UsageError
            Naming the first one, by the alphabet, and what it must be.
        """
        for name in sorted(given):
            if given[name] != record.get(name):
                raise UsageError(
                    f"{prog}: with --resume, {name} must be {record.get(name)!r} as in "
                    f"{self.config_json}, got {given[name]!r}"
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


def run_record(config: Mapping[str, object]) -> dict[str, object]:
    """Return the record that repeats a run: configuration, package versions, source revision."""
    return {
        "config": dict(config),
        "versions": package_versions(),
        "machine": {"cpu": cpu_name(), "cores": usable_cores()},
        "source_revision": source_revision(),
    }


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


def _made(path: Path) -> list[Path]:
    """Make a folder; return what it holds of an earlier run or of other people."""
    with system_errors(f"run folder {path}: cannot be made"):
        path.mkdir(parents=True, exist_ok=True)
        found = list(path.iterdir())  # the lock, and what a killed process left, do not count
        return [each for each in found if each.name != LOCK and target_of(each) is None]


def _require_folder(path: Path) -> None:
    if not path.is_dir():
        raise ValueError(f"run folder {path}: does not exist, so there is no run to resume")


def _finish_inputs(path: Path) -> None:
    """Put copies of input files in their places, should the process that wrote them be killed."""
    targets = {target_of(entry) for entry in path.iterdir()}
    finish_together([each for each in targets if each is not None and each.stem in INPUTS])


def _check_writable(path: Path) -> None:
    """Find out now, not when the first result is ready."""
    with system_errors(f"run folder {path}: cannot be written"):
        tempfile.TemporaryFile(dir=path).close()

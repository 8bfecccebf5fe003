"""A folder that measurements are dropped into: each file once, lines of JSON as they come."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agents.replanning.observed_world import WorldObservation
from calibration.measurements.sites import Sites
from des.base.bounded_files import read_at_most
from scenarios.watch.measured_files import observations_of_file
from scenarios.watch.observation_lines import observations_of_line

MOST_FILE_BYTES = 64 * 2**20
"""Largest file, or part of a file of lines, that is read at once."""

LINES = ".jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Observations that have come, by time, and a line for each thing that is wrong."""

    observations: tuple[WorldObservation, ...]
    problems: tuple[str, ...]


@dataclass(kw_only=True)
class FolderSource:
    """Reads what is new in a folder and its folders; hidden files are left alone.

    Attributes
    ----------
    known
        Of each file in the folder, the digest of its content when it was read; of files of lines,
        how many bytes were.
    """

    folder: Path
    sites: Sites
    known: dict[str, str | int] = field(default_factory=dict)

    def arrivals(self) -> Arrivals:
        """Return what is new since the last call."""
        files = self._files()
        self.known = {name: one for name, one in self.known.items() if name in files}
        seen: list[WorldObservation] = []
        problems: list[str] = []
        for name, path in files.items():
            try:
                if path.suffix == LINES:
                    seen += self._of_lines(name, path, problems)
                else:
                    seen += self._of_file(name, path, problems)
            except OSError as error:
                problems.append(f"{path}: cannot be read: {error.strerror}")
            except ValueError as error:
                problems.append(str(error) if str(path) in str(error) else f"{path}: {error}")
        ordered = sorted(seen, key=lambda one: one.time_s)
        return Arrivals(observations=tuple(ordered), problems=tuple(problems))

    def _files(self) -> dict[str, Path]:
        try:
            found = sorted(one for one in self.folder.rglob("*") if one.is_file())
        except OSError as error:
            raise ValueError(f"{self.folder}: cannot be read: {error.strerror}") from error
        relative = ((one.relative_to(self.folder), one) for one in found)
        return {
            str(name): one
            for name, one in relative
            if not any(part.startswith(".") for part in name.parts)
        }

    def _of_file(self, name: str, path: Path, problems: list[str]) -> tuple[WorldObservation, ...]:
        """Read a file whose content is not known, whatever its name."""
        content = read_at_most(path, MOST_FILE_BYTES)
        digest = hashlib.sha256(content).hexdigest()[:16]
        if self.known.get(name) == digest:
            return ()
        twin = next((other for other, one in self.known.items() if one == digest), None)
        self.known[name] = digest
        if twin is not None:
            problems.append(f"{path}: left out, it has the content of {twin}")
            return ()
        return observations_of_file(path, self.sites, path.stat().st_mtime)

    def _of_lines(self, name: str, path: Path, problems: list[str]) -> Iterator[WorldObservation]:
        """Read the whole lines that have been added; a shorter file is a new one."""
        begin = self.known.get(name, 0)
        if not isinstance(begin, int) or path.stat().st_size < begin:
            begin = 0
        with path.open("rb") as file:
            file.seek(begin)
            added = file.read(MOST_FILE_BYTES)
        whole = added[: added.rfind(b"\n") + 1]
        self.known[name] = begin + len(whole)
        for number, line in enumerate(whole.decode("utf-8", "replace").splitlines(), start=1):
            if not line.strip():
                continue
            where = f"{path}: line {number}{f' after byte {begin}' if begin else ''}"
            try:
                yield from observations_of_line(line)
            except ValueError as error:
                problems.append(f"{where}: {error}")

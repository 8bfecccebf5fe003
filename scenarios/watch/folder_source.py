"""A folder that measurements are dropped into: each file once, lines of JSON as they come."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from agents.replanning.observed_world import Figure, WorldObservation
from calibration.measurements.sites import Sites
from des.base.bounded_files import read_at_most
from des.base.checks import prefixed_errors, system_errors
from des.base.quantities import BANDWIDTH_BYTES_PER_S, DURATION_S, TIME_S, parse_quantity
from des.base.strict_forms import StrictForm, first_error
from des.base.strict_json import parse_json
from scenarios.watch.measured_files import observations_of_file

_OF = {
    "link": ("up", "bandwidth", "latency"),
    "site": ("up", "gpus", "utilisation", "memory_occupancy"),
}
"""Keys of what is observed of a link and of a site."""


class _LineForm(StrictForm):
    """One line: a time, whatever it is about, and at least one figure."""

    time: float | str
    link: str | None = None
    site: str | None = None
    up: bool | None = None
    bandwidth: str | None = None
    latency: str | None = None
    gpus: int | None = None
    utilisation: float | None = None
    memory_occupancy: float | None = None
    restart: str | None = None


def observations_of_line(line: str) -> tuple[WorldObservation, ...]:
    """Read a line.

    Examples
    --------
    >>> (seen,) = observations_of_line('{"time": 60, "link": "A->B", "bandwidth": "8Gbps"}')
    >>> seen.about, seen.figure, seen.value
    ('A->B', 'bandwidth_bytes_per_s', 1000000000.0)

    Raises
    ------
    ValueError
        Naming the key, what is allowed and what came.
    """
    try:
        form = _LineForm.model_validate(parse_json(line))
    except ValidationError as error:
        raise ValueError(first_error(error)) from error
    about = _about(form)
    found = tuple(
        WorldObservation(time_s=time_of(form.time), about=about, figure=figure, value=value)
        for figure, value in _figures(form)
    )
    if not found:
        raise ValueError("must hold a figure, such as bandwidth or up; got none")
    return found


def time_of(given: float | str) -> float:
    """Seconds since 1970 of a number, or of a text as ISO 8601 with its zone."""
    if not isinstance(given, str):
        return float(given)
    try:
        found = datetime.fromisoformat(given)
    except ValueError as error:
        raise ValueError(f"time: must be seconds since 1970 or ISO 8601, got {given!r}") from error
    if found.tzinfo is None:
        raise ValueError(f"time: must have a zone, such as Z or +01:00; got {given!r}")
    return found.timestamp()


def _about(form: _LineForm) -> str:
    """Link or site of a line; empty for a restart. Keys of the other kind are refused."""
    given: dict[Literal["link", "site"], str] = {}
    if form.link is not None:
        given["link"] = form.link
    if form.site is not None:
        given["site"] = form.site
    if len(given) + (form.restart is not None) != 1:
        raise ValueError("must be about one of link, site and restart, each in a line of its own")
    kind, about = next(iter(given.items()), ("restart", ""))
    own = ("time", kind, *_OF.get(kind, ()))
    for key in form.model_fields_set:
        if key not in own:
            raise ValueError(f"{key}: must be left out of a line about a {kind}")
    return about


def _figures(form: _LineForm) -> Iterator[tuple[Figure, float]]:
    quantities: tuple[tuple[str, str | None, Figure], ...] = (
        ("bandwidth", form.bandwidth, "bandwidth_bytes_per_s"),
        ("latency", form.latency, "latency_s"),
        ("restart", form.restart, "restart_s"),
    )
    for key, text, figure in quantities:
        if text is not None:
            with prefixed_errors(f"{key}: "):
                units = {"bandwidth": BANDWIDTH_BYTES_PER_S, "latency": TIME_S}.get(key, DURATION_S)
                yield figure, parse_quantity(text, units)
    if form.up is not None:
        yield "is_there", float(form.up)
    if form.gpus is not None:
        yield "num_gpus", float(form.gpus)
    if form.utilisation is not None:
        yield "utilisation", form.utilisation
    if form.memory_occupancy is not None:
        yield "memory_occupancy", form.memory_occupancy


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
        with system_errors(f"{self.folder}: cannot be read"):
            found = sorted(one for one in self.folder.rglob("*") if one.is_file())
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

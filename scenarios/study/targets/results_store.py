"""Targets in a run folder, kept group by group as they are measured, so that a run can resume."""

import math
import reprlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, PlainValidator, ValidationError

from agents.hi_ppo.policies import digest_of
from des.base.strict_forms import StrictForm, first_error
from des.base.text_files import read_json
from scenarios.frame.files import write_json
from scenarios.frame.statistics import MeanInterval
from scenarios.study.targets.names import MEASURED
from scenarios.study.targets.target import Goal, Sense, Target, Unit

Key = tuple[str, str]
"""Names of a column and of a group of targets."""

_NOT_FINITE = ("nan", "inf", "-inf")
"""Numbers that JSON does not have, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Inputs of a group of targets: flags, and the content of files.

    Attributes
    ----------
    flags
        Of the command, as config.json has them.
    files, sha256
        Files that are read, by the flag that names them, and what was in them.
    """

    flags: Mapping[str, object]
    files: Mapping[str, Path]
    sha256: Mapping[str, str]

    @classmethod
    def of(cls, flags: Mapping[str, object], files: Mapping[str, Path]) -> Self:
        """Look into the files.

        Raises
        ------
        OSError
            If one cannot be read.
        """
        sha256 = {flag: digest_of(path) for flag, path in files.items()}
        return cls(flags=flags, files=files, sha256=sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptGroup:
    """Targets of one group and column, and the revision of our source that measured them."""

    targets: tuple[Target, ...]
    source_revision: str | None


def path_of(run_folder: Path, key: Key) -> Path:
    """File of a column and group."""
    column, group = key
    return run_folder / MEASURED / f"{column}-{group}.json"


def store_result(run_folder: Path, key: Key, origin: Origin, group: KeptGroup) -> KeptGroup:
    """Write the targets of a group, whole or not at all; return what a later run reads.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    path = path_of(run_folder, key)
    path.parent.mkdir(exist_ok=True)
    content = {
        "column": key[0],
        "group": key[1],
        "flags": dict(origin.flags),
        "sha256": dict(origin.sha256),
        "source_revision": group.source_revision,
        "targets": [_plain(asdict(target)) for target in group.targets],
    }
    write_json(path, content)
    return _read(path, key, origin)


def read_kept(run_folder: Path, origins: Mapping[Key, Origin]) -> dict[Key, KeptGroup]:
    """Read all that `store_result` wrote, each target exactly as it was.

    Parameters
    ----------
    origins
        Of all columns and groups of the run; no other may be there.

    Raises
    ------
    ValueError
        If a file is corrupt or of another run, or a file that it comes from has changed since; the
        message names the file and the field.
    """
    folder = run_folder / MEASURED
    if not folder.exists():
        return {}
    keys = {path_of(run_folder, key): key for key in origins}
    paths = sorted(path for path in folder.iterdir() if path.suffix != ".tmp")  # a write cut off
    for path in paths:
        if path not in keys:
            raise ValueError(
                f"{path}: must be of a column and a group of this run, "
                f"{', '.join(sorted(one.name for one in keys))}"
            )
    return {keys[path]: _read(path, keys[path], origins[keys[path]]) for path in paths}


def _read(path: Path, key: Key, origin: Origin) -> KeptGroup:
    content = read_json(path)
    try:
        form = _FileForm.model_validate(content)
        _require_same(form, key, origin)
        targets = tuple(target.to_target() for target in form.targets)
    except ValidationError as error:
        raise ValueError(f"{path}: {first_error(error)}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return KeptGroup(targets=targets, source_revision=form.source_revision)


def _require_same(form: "_FileForm", key: Key, origin: Origin) -> None:
    wanted: dict[str, object] = {"column": key[0], "group": key[1]}
    wanted |= {f"flags.{name}": value for name, value in origin.flags.items()}
    found: dict[str, object] = {"column": form.column, "group": form.group}
    found |= {f"flags.{name}": value for name, value in form.flags.items()}
    for name in wanted | found:
        if found.get(name) != wanted.get(name):
            raise ValueError(
                f"{name} must be {wanted.get(name)!r} as in this run, got {found.get(name)!r}"
            )
    for flag in dict(origin.sha256) | form.sha256:
        now, then = origin.sha256.get(flag), form.sha256.get(flag)
        if now != then:
            raise ValueError(
                f"sha256.{flag} must be that of {origin.files.get(flag, 'no file')}, {now}, got "
                f"{then}: what was measured comes from another file; choose another --out"
            )


def _plain(value: object) -> object:
    """Turn parts of a target into what JSON has, each number exactly."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    return value


def _number(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value  # an integer stays one, and is written as one
    if isinstance(value, str) and value in _NOT_FINITE:
        return float(value)
    raise ValueError(
        f"must be a number or one of {', '.join(_NOT_FINITE)}; got {reprlib.repr(value)}"
    )


_Number = Annotated[float, PlainValidator(_number)]


class _IntervalForm(StrictForm):
    mean: _Number
    half_width: _Number


class _UnitForm(StrictForm):
    name: str
    factor: _Number


class _GoalForm(StrictForm):
    sense: Sense
    target: _Number
    stretch: _Number | None


class _TargetForm(StrictForm):
    """The fields of `Target`."""

    name: str
    definition: str
    reference: str
    goal: _GoalForm
    value: _Number
    interval: _IntervalForm | None
    unit: _UnitForm
    has_fewer_gpus: bool
    is_quick: bool = False
    notes: list[str]
    values: list[_Number] = Field(default_factory=list)

    def to_target(self) -> Target:
        """Make the value."""
        parts = {
            "goal": Goal(**dict(self.goal)),
            "interval": None if self.interval is None else MeanInterval(**dict(self.interval)),
            "unit": Unit(**dict(self.unit)),
            "notes": tuple(self.notes),
            "values": tuple(self.values),
        }
        return Target(**{**dict(self), **parts})


class _FileForm(StrictForm):
    """Fields of a file of `store_result`."""

    column: str
    group: str
    flags: dict[str, object]
    sha256: dict[str, str]
    source_revision: str | None
    targets: list[_TargetForm]

"""Reading files of published rows: ``{"source": ..., "targets": {...}, "rows": [{...}, ...]}``.

A figure that is ``null`` was not published, as one that is absent. Targets that a file does not
give are those of the file that comes with EastWest. Where its own rows miss a target, a file has
the figure on record in ``recorded``, which a later version may not fall behind.
"""

import reprlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from des.base.command import UsageError
from des.base.strict_forms import read_json_form

PUBLISHED = Path(str(files(__package__) / "data"))
"""Folder of the figures that come with EastWest; its README.md names their sources."""

PositiveNumber = Annotated[float, Field(gt=0)]
NonNegativeNumber = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(gt=0, le=10**6)]


class CasePart(BaseModel):
    """A part of a case file; keys that the form does not have only describe, and are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False, frozen=True)


class CaseForm(BaseModel):
    """A row of a case file: other types, NaN and infinity are refused.

    A key that the form does not have may hold a text, which describes and is ignored. A number or
    anything else under an unknown key could change the answer, so it is refused.
    """

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False, frozen=True)

    @model_validator(mode="after")
    def _unknown_keys_only_describe(self) -> Self:
        for key, value in (self.model_extra or {}).items():
            if not isinstance(value, str):
                known = ", ".join(type(self).model_fields)
                raise ValueError(
                    f"{key} must be text or one of the known fields {known}, "
                    f"got {reprlib.repr(value)}"
                )
        return self


RowT = TypeVar("RowT", bound=CaseForm)
SetupT = TypeVar("SetupT", bound=BaseModel)
FigureT = TypeVar("FigureT")
FileT = TypeVar("FileT", bound=BaseModel)


class CaseFile(CasePart, Generic[RowT]):
    """A whole file: where the figures are from, how near ours must be to them, and the rows.

    ``recorded`` has what is allowed in place of a target that is missed. Other keys describe the
    file.
    """

    source: str
    targets: dict[str, PositiveNumber] = {}
    recorded: dict[str, PositiveNumber] = {}
    rows: Annotated[tuple[RowT, ...], Field(min_length=1)]


class SetupFile(CasePart, Generic[RowT, SetupT]):
    """A file whose rows were measured on one setup; without one it takes that of another file."""

    source: str
    setup: SetupT | None = None
    rows: Annotated[tuple[RowT, ...], Field(min_length=1)]


def read_measured(
    path: Path, shipped: Path, row_form: type[RowT], setup_form: type[SetupT]
) -> tuple[tuple[RowT, ...], SetupT]:
    """Read the rows of a file, and their setup, which the ``shipped`` file lends to all others.

    Raises
    ------
    UsageError
        If there is no such file.
    ValueError
        If it is not JSON, or a field is missing or wrong; naming file, row, field, what is
        allowed and what came.
    """
    form = SetupFile[row_form, setup_form]  # type: ignore[valid-type]
    content = read_form(path, form)
    setup = content.setup or read_form(shipped, form).setup
    if setup is None:
        known = ", ".join(setup_form.model_fields)
        raise ValueError(f"{shipped}: setup must be given ({known}), got none")
    return content.rows, setup


def read_cases(path: Path, row_form: type[RowT], shipped: Path) -> CaseFile[RowT]:
    """Read a case file whose rows have that form; ``shipped`` names all targets and has defaults.

    Raises
    ------
    UsageError
        If there is no such file.
    ValueError
        If it is not JSON, or a field is missing or wrong; naming file, row, field, what is
        allowed and what came.
    """
    form = CaseFile[row_form]  # type: ignore[valid-type]
    ours, cases = read_form(shipped, form), read_form(path, form)
    for field in ("targets", "recorded"):
        for name in getattr(cases, field):
            if name not in ours.targets:
                known = ", ".join(ours.targets)
                raise ValueError(f"{path}: {field} must have keys of {known}; got {name!r}")
    return cases.model_copy(update={"targets": {**ours.targets, **cases.targets}})


def read_form(path: Path, form: type[FileT]) -> FileT:
    """Read a file of published rows that has that form.

    Raises
    ------
    UsageError
        If there is no such file.
    ValueError
        If it is not JSON, or a field is missing or wrong; naming file, row, field, what is
        allowed and what came.
    """
    return read_json_form(existing_cases(path), form)


def without_null(figures: Mapping[str, FigureT | None]) -> dict[str, FigureT]:
    """Return the figures that were published.

    Examples
    --------
    >>> without_null({"1f1b": 0.1509, "zb_v": None})
    {'1f1b': 0.1509}
    """
    return {name: figure for name, figure in figures.items() if figure is not None}


def require_judged(path: Path, judged: bool, needed: str) -> None:
    """Refuse a file none of whose figures has a bound.

    Raises
    ------
    UsageError
        If nothing is ``judged``.
    """
    if not judged:
        raise UsageError(f"{path}: rows must have {needed}, got none that is not null")


def existing_cases(path: Path, *, kind: str = "file") -> Path:
    """Return the path if there is such a file (or folder, as ``kind`` says).

    Raises
    ------
    UsageError
        If there is not.
    """
    if not (path.is_dir() if kind == "folder" else path.is_file()):
        raise UsageError(
            f"cases: must be a {kind} of published figures, got {path}, which is none; "
            f"give --cases {'FOLDER' if kind == 'folder' else 'FILE'}"
        )
    return path

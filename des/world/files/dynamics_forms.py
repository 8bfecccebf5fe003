"""The section ``dynamics`` of a topology file: the name of a preset, or a law with its figures."""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, Protocol

from pydantic import BeforeValidator, Field, ValidationError, create_model

from des.base.quantities import TIME_S, format_quantity, parse_quantity
from des.base.strict_forms import StrictForm, first_error
from des.dynamics import (
    DYNAMICS,
    LAWS,
    Law,
    LinkState,
    MarkovModulated,
    Product,
    UniformLaw,
    kind_of,
)
from des.world.files.trace_files import read_link_trace

_PER_EPOCH, _FOR_EVER = "per_epoch", "for_ever"


def _time_or(word: str, meaning: float | None) -> BeforeValidator:
    """Make a validator of a time with a unit, or of a word that stands for something else."""

    def parse(value: object) -> float | None:
        if value == word:
            return meaning
        try:
            return parse_quantity(value, TIME_S)
        except ValueError as error:
            raise ValueError(f"must be {word} or a time such as '5s'; got {value!r}") from error

    return BeforeValidator(parse)


_Time = Annotated[float, BeforeValidator(lambda value: parse_quantity(value, TIME_S))]
_Interval = Annotated[float | None, _time_or(_PER_EPOCH, None)]


class _LawForm(Protocol):
    def to_law(self, folder: Path) -> Law:
        """Make the value; names of files are relative to the folder."""


class _KindForm(StrictForm):
    """The figures of a law, without the key ``kind`` that chose the form."""

    read_before = ("kind",)


class _UniformForm(_KindForm):
    """The defaults are those of East-Central-West."""

    bandwidth_fluctuation: float = 0.3
    latency_jitter: float = 0.2
    update_interval: _Interval = None
    correlation: float = 0.0

    def to_law(self, folder: Path) -> Law:
        return UniformLaw(
            bandwidth_fluctuation=self.bandwidth_fluctuation,
            latency_jitter=self.latency_jitter,
            update_interval_s=self.update_interval,
            correlation=self.correlation,
        )


class _StateForm(StrictForm):
    bandwidth_factor: float
    latency_factor: float = 1.0
    mean_dwell: Annotated[float | None, _time_or(_FOR_EVER, None)]
    followed_by: dict[str, float] = Field(default_factory=dict)

    def to_state(self, name: str) -> LinkState:
        """Make the value."""
        return LinkState(
            name=name,
            bandwidth_factor=self.bandwidth_factor,
            latency_factor=self.latency_factor,
            mean_dwell_s=math.inf if self.mean_dwell is None else self.mean_dwell,
            followed_by=tuple(self.followed_by.items()),
        )


class _MarkovForm(_KindForm):
    states: dict[str, _StateForm]
    starts_in: str | None = None
    correlation: float = 0.0

    def to_law(self, folder: Path) -> Law:
        return MarkovModulated(
            states=tuple(state.to_state(name) for name, state in self.states.items()),
            starts_in=self.starts_in,
            correlation=self.correlation,
        )


class _ReplayForm(_KindForm):
    file: str
    columns: dict[str, str] = Field(default_factory=dict)
    longest_gap: _Time | None = None
    holds_last: bool = False

    def to_law(self, folder: Path) -> Law:
        return read_link_trace(
            folder / self.file,
            columns=self.columns,
            longest_gap_s=self.longest_gap,
            holds_last=self.holds_last,
        )


class _ProductForm(_KindForm):
    laws: list[object]

    def to_law(self, folder: Path) -> Law:
        return Product(
            laws=tuple(
                read_law(entry, folder, owner=f"dynamics.laws[{index}]")
                for index, entry in enumerate(self.laws)
            )
        )


def _uniform_entry(law: Law) -> dict[str, object]:
    assert isinstance(law, UniformLaw)
    return _figures(law, _PER_EPOCH)


def _markov_entry(law: Law) -> dict[str, object]:
    assert isinstance(law, MarkovModulated)
    states = {state.name: _state_entry(state) for state in law.states}
    start = {} if law.starts_in is None else {"starts_in": law.starts_in}
    return {"states": states, **start, "correlation": float(law.correlation)}


def _product_entry(law: Law) -> dict[str, object]:
    assert isinstance(law, Product)
    return {"laws": [law_entry(one) for one in law.laws]}


class _FileForm(NamedTuple):
    """Reading and writing of a law; a law without ``entry`` has its figures in another file."""

    form: Callable[[object], _LawForm]
    entry: Callable[[Law], dict[str, object]] | None


FORMS: Mapping[str, _FileForm] = MappingProxyType(
    {
        "uniform": _FileForm(_UniformForm.model_validate, _uniform_entry),
        "markov": _FileForm(_MarkovForm.model_validate, _markov_entry),
        "replay": _FileForm(_ReplayForm.model_validate, None),
        "product": _FileForm(_ProductForm.model_validate, _product_entry),
    }
)
"""Forms of laws that files write otherwise than by their fields; all others have `plain_form`."""


@cache
def plain_form(kind: str) -> _FileForm:
    """Make the form of a law of `des.dynamics.LAWS` whose fields are numbers.

    Keys are the fields; one that ends in ``_s`` loses that, and holds a time with a unit.
    """
    law = LAWS[kind]
    assert is_dataclass(law), "a law is a frozen dataclass"
    name_of = {field.name.removesuffix("_s"): field.name for field in fields(law)}
    keys: dict[str, Any] = {}
    for field in fields(law):
        key, is_time = field.name.removesuffix("_s"), field.name.endswith("_s")
        default = ... if field.default is MISSING else field.default
        keys[key] = (_Time if is_time else float, default)
    form = create_model(f"{law.__name__}Form", __base__=_KindForm, **keys)

    def to_law(content: object) -> _LawForm:
        figures = dict(form.model_validate(content))
        return _PlainFigures(law(**{name_of[key]: value for key, value in figures.items()}))

    return _FileForm(to_law, _figures)


class _PlainFigures(NamedTuple):
    """A law that has been read whole."""

    law: Law

    def to_law(self, folder: Path) -> Law:
        """Return the law; no file of the folder belongs to it."""
        return self.law


def read_law(content: object, folder: Path = Path(), *, owner: str = "dynamics") -> Law:
    """Make a law of the name of a preset, or of a mapping whose ``kind`` is uniform if left out.

    Raises
    ------
    ValueError
        If there is no such law; the message names the field, what is allowed and what came.
    """
    if isinstance(content, str) and content in DYNAMICS:
        return DYNAMICS[content]
    if not isinstance(content, Mapping):
        raise ValueError(
            f"{owner}: must be a mapping or one of {', '.join(DYNAMICS)}; got {content!r}"
        )
    kind = content.get("kind", "uniform")
    if not isinstance(kind, str) or kind not in LAWS:
        raise ValueError(f"{owner}.kind: must be one of {', '.join(LAWS)}; got {kind!r}")
    figures = {key: value for key, value in content.items() if key != "kind"}
    try:
        form = _form_of(kind).form(figures)
    except ValidationError as error:
        raise ValueError(f"{owner}.{first_error(error)}") from error
    return form.to_law(folder)


def law_entry(law: Law) -> dict[str, object]:
    """Write a law as the mapping that reads back as it, to the last bit.

    Raises
    ------
    ValueError
        If the law is a replay, whose figures are in a file of their own.
    """
    kind = kind_of(law)
    entry = _form_of(kind).entry
    if entry is None:
        raise ValueError(f"topology: dynamics must have a form in files, got {type(law).__name__}")
    return {"kind": kind} | entry(law)


def _form_of(kind: str) -> _FileForm:
    return FORMS[kind] if kind in FORMS else plain_form(kind)


def _state_entry(state: LinkState) -> dict[str, object]:
    for_ever = state.mean_dwell_s == math.inf
    return {
        "bandwidth_factor": float(state.bandwidth_factor),
        "latency_factor": float(state.latency_factor),
        "mean_dwell": _FOR_EVER if for_ever else format_quantity(state.mean_dwell_s, "s", TIME_S),
        "followed_by": {name: float(probability) for name, probability in state.followed_by},
    }


def _figures(law: Law, no_time: str = "") -> dict[str, object]:
    """All fields, times with their unit."""
    assert is_dataclass(law), "a law is a frozen dataclass"
    entry: dict[str, object] = {}
    for field in fields(law):
        value = getattr(law, field.name)
        if not field.name.endswith("_s"):
            entry[field.name] = float(value)
        else:
            time = no_time if value is None else format_quantity(value, "s", TIME_S)
            entry[field.name.removesuffix("_s")] = time
    return entry

"""Frozen values made without the library are like those that the library makes."""

import copy
import dataclasses
import pickle

import pytest

from astra_sim.base import values


@values.dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A value with a default, a field outside equality, one outside its text, and a condition."""

    rate: float
    hops: int = 1
    source: str = values.field(default="file", compare=False)
    note: str = values.field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.rate <= 0:
            raise ValueError(f"rate: must be positive, got {self.rate}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LibraryLink:
    """The same from the library."""

    rate: float
    hops: int = 1
    source: str = dataclasses.field(default="file", compare=False)
    note: str = dataclasses.field(default="", repr=False)


PLACES = [
    {"rate": 2.0},
    {"rate": 2.0, "hops": 3},
    {"rate": 2.0, "source": "other"},
    {"rate": 2.0, "note": "x"},
]


@pytest.mark.parametrize("given", PLACES)
def test_text_equality_and_hash_are_those_of_the_library(given):
    made, like = Link(**given), LibraryLink(**given)

    assert repr(made) == repr(like).removeprefix("Library")
    assert [made == Link(**other) for other in PLACES] == [
        like == LibraryLink(**other) for other in PLACES
    ]
    assert hash(made) == hash(like)
    assert made != like
    assert dataclasses.asdict(made) == dataclasses.asdict(like)


def test_a_value_never_changes():
    link = Link(rate=1.0)

    for change in (lambda: setattr(link, "rate", 2.0), lambda: delattr(link, "rate")):
        with pytest.raises(dataclasses.FrozenInstanceError, match="rate"):
            change()
    with pytest.raises(AttributeError):
        _ = link.__dict__


@pytest.mark.parametrize(
    ("given", "named"), [({}, "rate"), ({"rate": 1.0, "speed": 2}, "speed"), ({"rate": 0}, "rate")]
)
def test_missing_unknown_and_refused_fields_are_named(given, named):
    with pytest.raises((TypeError, ValueError), match=named):
        Link(**given)


@pytest.mark.parametrize("replace", [values.replace, dataclasses.replace])
def test_a_changed_value_is_checked_like_any_other(replace):
    link = Link(rate=1.0, hops=2, source="here", note="kept")

    assert repr(replace(link, rate=3.0)) == "Link(rate=3.0, hops=2, source='here')"
    assert replace(link, rate=3.0).note == "kept"
    with pytest.raises(ValueError, match="rate"):
        replace(link, rate=-1.0)


@pytest.mark.parametrize(
    "carried", [lambda link: pickle.loads(pickle.dumps(link)), copy.copy, copy.deepcopy]
)
def test_a_value_survives_copies(carried):
    link = Link(rate=1.0, source="here")

    assert carried(link) == link
    assert carried(link).source == "here"


def test_only_frozen_values_by_keyword_are_made():
    with pytest.raises(TypeError, match="frozen"):
        values.dataclass(frozen=False, slots=True, kw_only=True)

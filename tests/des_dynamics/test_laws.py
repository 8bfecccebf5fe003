"""One table of laws: every one has a form in files, and compiled code takes every one."""

from types import MappingProxyType

import pytest
from every_law import Tide
from strategies import free_world

from des.dynamics import DYNAMICS, LAWS, kind_of, laws
from des.world.files import dynamics_forms
from des.world.files.dynamics_forms import FORMS, law_entry, plain_form, read_law


def test_every_law_of_the_table_has_a_form_in_files():
    assert FORMS.keys() <= LAWS.keys()
    for kind in LAWS.keys() - FORMS.keys():
        assert plain_form(kind).entry is not None


def test_one_row_makes_a_law_of_numbers_known_to_files(monkeypatch):
    rows = MappingProxyType({**LAWS, "tide": Tide})
    for module in (laws, dynamics_forms):
        monkeypatch.setattr(module, "LAWS", rows)
    law = read_law({"kind": "tide", "period": "60s", "ebb": 0.5})

    assert law == Tide(period_s=60.0, ebb=0.5)
    assert read_law(law_entry(law)) == law
    with pytest.raises(ValueError, match=r"dynamics\.period: .*; got 60$"):
        read_law({"kind": "tide", "period": 60, "ebb": 0.5})


def test_all_presets_are_laws_of_the_table():
    for name, law in DYNAMICS.items():
        assert type(law) is LAWS[kind_of(law)], name


def test_the_kinds_that_files_allow_are_those_of_the_table():
    with pytest.raises(ValueError, match=f"must be one of {', '.join(LAWS)}; got 'weather'"):
        read_law({"kind": "weather"})


def test_what_is_no_law_of_the_table_is_named():
    with pytest.raises(ValueError, match=r"law must be one of uniform, .*; got Topology"):
        kind_of(free_world(2))

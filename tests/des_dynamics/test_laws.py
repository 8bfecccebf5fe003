"""One table of laws: every one has a form in files, and compiled code takes every one."""

import pytest
from strategies import free_world

from des.compiled.links import DRAWN_IN_KERNELS
from des.dynamics import DYNAMICS, LAWS, kind_of
from des.world.files.dynamics_forms import FORMS, read_law


def test_every_law_of_the_table_has_a_form_in_files():
    assert FORMS.keys() == LAWS.keys()
    assert DRAWN_IN_KERNELS.keys() <= LAWS.keys()


def test_all_presets_are_laws_of_the_table():
    for name, law in DYNAMICS.items():
        assert type(law) is LAWS[kind_of(law)], name


def test_the_kinds_that_files_allow_are_those_of_the_table():
    with pytest.raises(ValueError, match=f"must be one of {', '.join(LAWS)}; got 'weather'"):
        read_law({"kind": "weather"})


def test_what_is_no_law_of_the_table_is_named():
    with pytest.raises(ValueError, match=r"law must be one of uniform, .*; got Topology"):
        kind_of(free_world(2))

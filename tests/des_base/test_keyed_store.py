"""Files of numbers by key."""

import math
import struct

import pytest

from des.base.keyed_store import KeyedStore
from des.base.store_file import connected

NUMBERS = [0.1, 1e-300, math.pi, 2.0**60]


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return KeyedStore.open(tmp_path / "kept.sqlite", holds="times", application_id=1234)


def test_numbers_come_back_to_the_last_bit_and_the_first_ones_stay(store):
    store.put("a", NUMBERS)
    store.put("a", [1.0])

    found = KeyedStore.open(store.path, holds="times", application_id=1234).get("a")
    assert [struct.pack("d", each) for each in found] == [struct.pack("d", n) for n in NUMBERS]
    assert store.get("b") is None


def test_a_changed_entry_and_a_store_of_something_else_are_refused(store):
    store.put("a", NUMBERS)
    with connected(store.path, "rw", "times") as connection:
        connection.execute("UPDATE kept SET content = '[2.0]'")

    with pytest.raises(ValueError, match=r"kept\.sqlite: entry '.*' must be as it was written"):
        store.get("a")
    with pytest.raises(ValueError, match=r"kept\.sqlite: must be a store of prices, got another"):
        KeyedStore.open(store.path, holds="prices", application_id=1235)

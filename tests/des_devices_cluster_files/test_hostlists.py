"""Lists of hosts both ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.devices.cluster_files.hostlist import compress_hosts, expand_hosts

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,5}[0-9]{0,3}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("tux[0-3,12,18-20]", [f"tux{at}" for at in (0, 1, 2, 3, 12, 18, 19, 20)]),
        ("node[001-003,20]", ["node001", "node002", "node003", "node20"]),
        ("node[8-10]", ["node8", "node9", "node10"]),
        ("a,b[1-2]c,d", ["a", "b1c", "b2c", "d"]),
        ("n[5,3]", ["n5", "n3"]),
    ],
)
def test_lists_by_hand(text, names):
    assert expand_hosts(text) == names


@pytest.mark.parametrize("text", ["n[1-3,7],m[09-10],login", "node[008-010]", "n[9-10]", "n[5,3]"])
def test_normal_forms_stay(text):
    assert compress_hosts(expand_hosts(text)) == text


@given(names=st.lists(NAMES, min_size=1, max_size=12))
def test_names_and_their_order_come_back(names):
    assert expand_hosts(compress_hosts(names)) == names


@pytest.mark.parametrize(
    "text", ["n[1-", "n]1[", "n[]", "n[a-b]", "n[3-1]", "n[[1]]", "a,,b", "n[1-999999999]", "x y"]
)
def test_damaged_lists_are_refused(text):
    with pytest.raises(ValueError, match="hosts"):
        expand_hosts(text)


@pytest.mark.parametrize("name", ["a,b", "n[1]", "a b", ""])
def test_names_that_no_list_can_hold_are_refused(name):
    with pytest.raises(ValueError, match="name must be without blanks"):
        compress_hosts([name])

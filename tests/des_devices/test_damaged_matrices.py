"""Damaged matrices: refused in one ValueError with the reason, or read as the same server."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from topo_outputs import READABLE, server_in

TEXTS = tuple(path.read_text(encoding="utf-8") for path in READABLE)
SERVERS = tuple(server_in(text) for text in TEXTS)
GOOD = TEXTS[0]


def table_of(text):
    """Lines of a recorded output, and how many of them are the table."""
    lines = text.split("\n")
    return lines, lines.index("")


@st.composite
def damages(draw):
    """A recorded output and its text with one to three cells or lines cut, glued or swapped."""
    place = draw(st.integers(0, len(TEXTS) - 1))
    lines, size = table_of(TEXTS[place])
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.integers(0, size - 1))
        cells = lines[row].split("\t")
        cell = draw(st.integers(0, len(cells) - 1))
        other = draw(st.integers(0, len(cells) - 1))
        kind = draw(
            st.sampled_from(["drop", "empty", "glue", "swap", "cut", "line", "rows", "end"])
        )
        if kind == "drop":
            del cells[cell]
        elif kind == "empty":
            cells[cell] = ""
        elif kind == "glue":
            cells[cell : cell + 2] = ["".join(cells[cell : cell + 2])]
        elif kind == "swap":
            cells[cell], cells[other] = cells[other], cells[cell]
        elif kind == "cut":
            cells = cells[: cell + 1]
        lines[row] = "\t".join(cells)
        if kind == "line":
            lines[row] = ""
        elif kind == "rows":
            target = draw(st.integers(0, size - 1))
            lines[row], lines[target] = lines[target], lines[row]
        elif kind == "end":
            lines = lines[: max(row, 1)] + lines[size:]
            size = max(row, 1)
    return place, "\n".join(lines)


@given(damage=damages())
@settings(max_examples=300)
def test_damage_is_refused_or_changes_no_token(damage):
    place, text = damage
    try:
        read = server_in(text)
    except ValueError:
        return
    assert read.tokens == SERVERS[place].tokens
    assert read.device_names == SERVERS[place].device_names


@given(place=st.integers(0, len(TEXTS) - 1), at=st.integers(0, 3000), letter=st.characters())
@settings(max_examples=200)
def test_a_foreign_letter_is_refused_or_changes_no_token(place, at, letter):
    text = TEXTS[place][:at] + letter + TEXTS[place][at + 1 :]
    try:
        read = server_in(text)
    except ValueError:
        return
    known = SERVERS[place]
    assert read.tokens == known.tokens
    assert read.num_gpus == known.num_gpus


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "GPU3\tNV18",
            "GPU3\tNVL18",
            "line 5: row GPU3 must have 16 tokens, .*got 0 and then 'NVL",
        ),
        ("GPU1\tNV18\t X ", "GPU1\tNV18", "row GPU1 must have 16 tokens, .*got 15 and then '0-47"),
        ("GPU1\tNV18", "GPU1\tNV18\tNV18", "row GPU1 must have 16 tokens, .*got 17"),
        ("GPU1\tNV18", "GPU1\tNV12", "token of GPU1 and GPU0 must be the same both ways"),
        ("GPU2\tNV18\tNV18\t X ", "GPU2\tNV18\tNV18\tNV18", "token of GPU2 and GPU2 must be X"),
        ("\nGPU2", "\nGPU1", "line 4: row GPU1 is given twice"),
        ("\nGPU2", "\nGPU9", "line 4: row GPU9 is not in the header"),
        ("\tGPU2", "\tGPU1", "header names GPU1 twice"),
        ("NIC7\tSYS", "\nI am cut\nNIC7\tSYS", "rows missing: NIC7; the table ends before 'I am"),
        ("\tGPU NUMA ID", "\tPurpose", "header must end with CPU Affinity, NUMA Affinity"),
        ("\tGPU NUMA ID", "", "must have at most 2 affinity cells, got 0-47,96-143 0 N/A"),
        ("0-47,96-143\t0\t\tN/A", "0-47,96-143\tN/A", "which could be of several columns"),
        ("0-47,96-143\t0", "47-0,96-143\t0", "row GPU0: CPU Affinity must be rising ranges"),
        ("0-47,96-143\t0", "0\t0-47,96-143", "cells were swapped"),
        ("0-47,96-143\t0\t\tN/A\nGPU1", "\nGPU1", "rows of GPU0 end before their affinity cells"),
        ("  NIC7: mlx5_8", "  NIC9: mlx5_8", "legend names NIC9, which has no row"),
        ("  NIC7: mlx5_8", "  NIC6: mlx5_9", "legend names NIC6 both mlx5_7 and mlx5_9"),
    ],
)
def test_the_reason_names_line_row_and_cell(old, new, message):
    assert old in GOOD
    with pytest.raises(ValueError, match=message):
        server_in(GOOD.replace(old, new, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold one matrix of nvidia-smi topo -m, .*got none"),
        ("NVIDIA-SMI has failed because it couldn't communicate", "got none"),
        (GOOD + GOOD, "got 2, at lines 1, 40"),
        (GOOD[GOOD.index("\n") :], "got none"),
        (" \tGPU0\tGPU1\n GPU0\tX\tGNS\n GPU1\tGNS\tX\n", "line 1: .*got that of topo -p2p"),
        ("NIC0\tGPU0\nNIC0\tX\tPIX\nGPU0\tPIX\tX\n", "got none"),
        (
            "GPU0\tNIC0\tGPU1\nGPU0\tX\tPIX\tSYS\nNIC0\tPIX\tX\tSYS\nGPU1\tSYS\tSYS\tX\n",
            "GPUs first",
        ),
    ],
)
def test_texts_without_one_matrix_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        server_in(text)

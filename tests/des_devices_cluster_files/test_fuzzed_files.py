"""Damaged files: a cluster or one ValueError, never another error."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.devices.cluster import Cluster
from des.devices.cluster_files.table import CLUSTER_FORMATS, ClusterFormat, format_of_text

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "clusters"
TEXTS = {path.stem: path.read_text("utf-8") for path in sorted(GOLDEN.glob("*.[cyj]*"))}
PIECES = st.one_of(
    st.sampled_from(
        ["\n", ": ", "- ", "[", "]", "{", "}", ",", "=", "null", "1-", "&a ", "*a", '"']
    ),
    st.text(max_size=3),
)


def outcome(row: ClusterFormat, text: str) -> Cluster | str:
    """Cluster that is read, or the refusal; any other error fails the test."""
    try:
        return row.read(text)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", TEXTS)
@given(data=st.data())
def test_pieces_cut_out_and_put_in(name, data):
    text = TEXTS[name]
    row = CLUSTER_FORMATS[format_of_text(text)]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 40)))
        text = text[:start] + data.draw(PIECES) + text[end:]

    assert outcome(row, text)


@pytest.mark.parametrize("reader", CLUSTER_FORMATS)
@pytest.mark.parametrize("name", TEXTS)
def test_files_of_other_formats_are_refused_or_read(name, reader):
    assert outcome(CLUSTER_FORMATS[reader], TEXTS[name])

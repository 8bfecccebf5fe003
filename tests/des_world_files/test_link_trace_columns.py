"""Link traces whose columns have names of their own, and units."""

import re

import pytest

from des.world.files.dynamics_forms import read_law
from des.world.files.trace_files import read_link_trace

OWN = """\
t,from,to,bw,rtt,note
0,A,B,8Gbps,12ms,x
0,B,A,1e9,0.5,y
1min,A,B,4Gbps,12ms,
1min,B,A,1e9,0.5,
"""
NAMES = {"time": "t", "source": "from", "target": "to", "bandwidth": "bw", "latency": "rtt"}


def written(tmp_path, text=OWN):
    path = tmp_path / "trace.csv"
    path.write_text(text.replace("1min", "60s"), "utf-8")
    return path


def test_named_columns_are_read_with_their_units_and_others_are_skipped(tmp_path):
    there, back = read_link_trace(written(tmp_path), columns=NAMES).series

    assert (there.source, there.target, there.times_s) == ("A", "B", (0.0, 60.0))
    assert there.bandwidths_bytes_per_s == (1e9, 5e8)
    assert there.latencies_s == (0.012, 0.012)
    assert (back.bandwidths_bytes_per_s, back.latencies_s) == ((1e9, 1e9), (0.5, 0.5))


def test_a_topology_names_the_columns_of_its_trace(tmp_path):
    path = written(tmp_path)
    content = {"kind": "replay", "file": path.name, "columns": NAMES}

    assert read_law(content, tmp_path) == read_link_trace(path, columns=NAMES)


@pytest.mark.parametrize(
    ("columns", "text", "message"),
    [
        ({}, OWN, "got t,from,to,bw,rtt,note, without time_s,source,target,bandwidth_bytes_per_s"),
        (NAMES | {"latency": "delay"}, OWN, "got t,from,to,bw,rtt,note, without delay"),
        (NAMES | {"speed": "bw"}, OWN, "columns: unknown 'speed'"),
        (NAMES, OWN.replace("8Gbps", "8 fast"), "line 2: bw must be a number, got '8 fast'; "),
    ],
)
def test_missing_columns_and_bad_units_are_named(columns, text, message, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_link_trace(written(tmp_path, text), columns=columns)

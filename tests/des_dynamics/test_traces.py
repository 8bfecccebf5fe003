"""Links that replay a trace, and the CSV files traces come in."""

import dataclasses
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import world

from des import Link, Movement
from des.dynamics import LinkSeries, Replay
from des.dynamics.link_course import Weather
from des.world.files.trace_files import read_link_trace

HEADER = "time_s,source,target,bandwidth_bytes_per_s,latency_s"
GOOD = f"""{HEADER}
0,A,B,4,8
0,B,A,8,1
2.5,A,B,0,8
2.5,B,A,8,1
10,A,B,6,2
10,B,A,2,3
"""
PAIR = world("AB", {"AB": (4.0, 8.0), "BA": (8.0, 1.0)})


def written(folder, text):
    """Write a trace file."""
    path = folder / "trace.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def series(**fields):
    """A series of A->B."""
    return LinkSeries(
        **{
            "source": "A",
            "target": "B",
            "times_s": (0.0, 2.5, 10.0),
            "bandwidths_bytes_per_s": (4.0, 0.0, 6.0),
            "latencies_s": (8.0, 8.0, 2.0),
        }
        | fields
    )


def test_a_file_by_hand(tmp_path):
    path = written(tmp_path, GOOD)

    back = series(
        source="B",
        target="A",
        bandwidths_bytes_per_s=(8.0, 8.0, 2.0),
        latencies_s=(1.0, 1.0, 3.0),
    )
    assert read_link_trace(path) == Replay(name=str(path), series=(series(), back))
    assert read_link_trace(str(path), holds_last=True, longest_gap_s=7.5).holds_last


def test_links_may_come_one_after_the_other_and_columns_in_any_order(tmp_path):
    lines = GOOD.splitlines()
    by_link = "\n".join([lines[0], *lines[1::2], *lines[2::2]])
    turned = "\n".join(",".join(line.split(",")[::-1]) for line in lines)

    expected = read_link_trace(written(tmp_path, GOOD)).series
    assert read_link_trace(written(tmp_path, by_link)).series == expected
    assert read_link_trace(written(tmp_path, turned)).series == expected


def test_a_row_rules_until_the_next():
    """As factors on 4 bytes/s and 8 s; nothing rules at the last row, which ends the trace."""
    law = Replay(name="trace", series=(series(),))
    path = law.path(PAIR.links[:1], 0)

    assert path.piece_at(0, 0.0) == path.piece_at(0, 2.4) == (0.0, 2.5, 1.0, 1.0)
    assert path.piece_at(0, 2.5) == path.piece_at(0, 9.9) == (2.5, 10.0, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"trace: link A->B: trace must cover the run, got fig"):
        path.piece_at(0, 10.0)
    held = dataclasses.replace(law, holds_last=True).path(PAIR.links[:1], 0)
    assert held.piece_at(0, 10.0) == held.piece_at(0, 1e9) == (10.0, math.inf, 1.5, 0.25)
    assert law.extremes(PAIR.links[0]) == (0.0, 1.5, 0.25, 1.0)


@given(
    rows=st.lists(
        st.tuples(st.floats(0.001, 100.0), st.floats(0.0, 1e9), st.floats(0.0, 1.0)), min_size=1
    ),
    time_s=st.floats(0.0, 1e4),
    start_s=st.floats(0.0, 1e3),
)
def test_a_link_has_the_figures_of_the_last_row_before(rows, time_s, start_s):
    link = Link(source="A", target="B", bandwidth_bytes_per_s=3e8, latency_s=0.03)
    times_s = [0.0]
    for gap_s, *_ in rows[1:]:
        times_s.append(times_s[-1] + gap_s)
    _, bandwidths, latencies_s = zip(*rows, strict=True)
    one = series(times_s=tuple(times_s), bandwidths_bytes_per_s=bandwidths, latencies_s=latencies_s)
    law = Replay(name="trace", series=(one,), holds_last=True)

    weather = Weather(Movement(law=law, seed=0, start_s=start_s), [link])
    bandwidth_factor, latency_factor, until_s = weather.piece(0, time_s)
    row = max(index for index, at_s in enumerate(times_s) if at_s - start_s <= time_s)
    assert 3e8 * bandwidth_factor == pytest.approx(bandwidths[row], rel=1e-15)
    assert 0.03 * latency_factor == pytest.approx(latencies_s[row], rel=1e-15)
    assert until_s == ([*times_s, math.inf][row + 1]) - start_s


def test_a_link_without_base_latency_may_stay_without():
    link = Link(source="A", target="B", bandwidth_bytes_per_s=1.0, latency_s=0.0)
    law = Replay(name="trace", series=(series(latencies_s=(0.0, 0.0, 0.0)),))

    law.check_links([link])
    assert law.path([link], 0).piece_at(0, 0.0).latency_factor == 1.0
    with pytest.raises(ValueError, match=r"link A->B: latency_s must be 0 as in the world, got 8"):
        Replay(name="trace", series=(series(),)).check_links([link])


def test_a_world_refuses_a_trace_of_other_links():
    law = Replay(name="t.csv", series=(series(),))
    message = "t.csv: trace must hold every link of the world, got no row of link B->A"
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(PAIR, dynamics=law)
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(PAIR, movement=Movement(law=law, seed=0))
    other = Replay(
        name="t.csv", series=(series(), series(source="B", target="A"), series(target="C"))
    )
    with pytest.raises(ValueError, match=r"t.csv: link A->C: must be a link of the world, got non"):
        dataclasses.replace(PAIR, dynamics=other)


BAD_SERIES = {
    "no rows": ({"times_s": ()}, "times_s must hold as many entries as times_s, at least one; got"),
    "short": ({"latencies_s": (1.0,)}, "latencies_s must hold as many entries as times_s, at lea"),
    "late start": ({"times_s": (1.0, 2.0, 3.0)}, "times_s must start at 0 for there to be no gap"),
    "unsorted": ({"times_s": (0.0, 3.0, 2.0)}, "times_s must rise from row to row, got 2.0 after"),
    "twice": ({"times_s": (0.0, 3.0, 3.0)}, "times_s must rise from row to row, got 3.0 after 3."),
    "negative": ({"times_s": (-1.0, 0.0, 1.0)}, "times_s must be finite and not negative, got -1"),
    "NaN": ({"times_s": (0.0, math.nan, 1.0)}, "times_s must be finite and not negative, got nan"),
    "endless": ({"times_s": (0.0, 1.0, math.inf)}, "times_s must be finite and not negative, go"),
    "bandwidth": (
        {"bandwidths_bytes_per_s": (1.0, -1.0, 1.0)},
        "bandwidths_bytes_per_s must be finite and not negative, got -1.0",
    ),
    "latency": (
        {"latencies_s": (1.0, math.inf, 1.0)},
        "latencies_s must be finite and not negative, got inf",
    ),
}


@pytest.mark.parametrize(("fields", "message"), BAD_SERIES.values(), ids=BAD_SERIES)
def test_a_series_refuses_impossible_figures(fields, message):
    with pytest.raises(ValueError, match=f"link A->B: {message}"):
        series(**fields)


BAD_FILES = {
    "empty": ("", f"columns must be {HEADER}; got none"),
    "no rows": (HEADER, "trace must hold at least one link, got none"),
    "column": (GOOD.replace("latency_s", "rtt_s"), f"columns must be {HEADER}; got time_s,source"),
    "extra column": (GOOD.replace("latency_s", "latency_s,note"), f"columns must be {HEADER}; got"),
    "short row": (GOOD.replace("0,B,A,8,1", "0,B,A,8", 1), "line 3: must have 5 fields, one per"),
    "long row": (
        GOOD.replace("0,B,A,8,1", "0,B,A,8,1,7", 1),
        "line 3: must have 5 fields, one per",
    ),
    "text": (GOOD.replace("2.5,A", "soon,A"), "line 4: time_s must be a number, got 'soon'"),
    "blank": (GOOD.replace("A,B,0,8", "A,B,,8"), "line 4: bandwidth_bytes_per_s must be a number,"),
    "NaN": (GOOD.replace("A,B,0,8", "A,B,0,nan"), "link A->B: latencies_s must be finite and not"),
    "negative": (GOOD.replace("2.5,A", "-2.5,A"), "link A->B: times_s must be finite and not nega"),
    "unsorted": (
        GOOD.replace("2.5,A", "12.5,A"),
        "link A->B: times_s must rise from row to row, got 10.0 after 12.5",
    ),
    "gap": (
        GOOD.replace("2.5,B,A,8,1\n", ""),
        "link B->A: must have a row at every time of the trace, got a gap at 2.5 s",
    ),
    "same row": (GOOD + "10,B,A,2,3\n", "link B->A: times_s must rise from row to row, got 10.0"),
    "quote": (GOOD.replace("0,A,B,4,8", '0,"A"x,B,4,8', 1), "',' expected after '\"'"),
    "not text": (b"\xff\xfe\x00", "trace cannot be read: it is not UTF-8 text"),
}


@pytest.mark.parametrize(("text", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_with_file_line_and_value(tmp_path, text, message):
    path = written(tmp_path, text)

    with pytest.raises(ValueError, match=re.escape(f"{path}: {message}")):
        read_link_trace(path)


def test_rows_too_far_apart_are_a_gap_where_a_distance_is_given(tmp_path):
    path = written(tmp_path, GOOD)

    message = r"link A->B: times_s must be at most 5.0 s apart, got a gap from 2.5 to 10.0"
    with pytest.raises(ValueError, match=message):
        read_link_trace(path, longest_gap_s=5.0)
    with pytest.raises(ValueError, match=r"longest_gap_s must be positive and finite, got 0.0"):
        read_link_trace(path, longest_gap_s=0.0)


def test_a_link_given_twice_and_a_missing_file_are_refused(tmp_path):
    with pytest.raises(ValueError, match="t: link A->B: must be given once, got a duplicate"):
        Replay(name="t", series=(series(), series()))
    with pytest.raises(ValueError, match=r"none.csv: trace cannot be read: No such file"):
        read_link_trace(tmp_path / "none.csv")

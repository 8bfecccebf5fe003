"""A result as graph, as arrays and as HTML: the same figures as its tables."""

from importlib.util import find_spec

import numpy as np
import pytest
from strategies import plan, unit_workload, world

from des import simulate

PAIR = world("AB", {"AB": (4.0, 0.5), "BA": (2.0, 0.5)})
RESULT = simulate(
    PAIR, unit_workload([(1.0, 2.0)] * 2, num_microbatches=2, message_bytes=4.0), plan(0, 1)
)


def test_a_world_and_a_result_are_graphs_over_domains():
    """An activation of 4 bytes takes 1 s there, a gradient 2 s back, each twice."""
    whole, used = PAIR.to_networkx(), RESULT.to_networkx()

    assert dict(whole.edges["A", "B"]) == {"bandwidth_bytes_per_s": 4.0, "latency_s": 0.5}
    assert whole.nodes["B"]["num_gpus"] == 1
    assert used.nodes["A"] == {"busy_s": 6.0, "num_layers": 1}
    assert used.edges["A", "B"]["num_messages"] == used.edges["B", "A"]["num_messages"] == 2
    assert used.edges["A", "B"]["busy_s"] == 2.0
    assert used.edges["B", "A"]["busy_s"] == 4.0


def test_html_has_the_headline_and_a_row_a_stage():
    shown = RESULT._repr_html_()

    assert shown.startswith(f"<h4>{RESULT.makespan_s:.4g} s an iteration")
    assert "<p>0 GB" in shown or "<p>1.6e-08 GB over 2 links" in shown
    assert shown.count("<tr") == 3


def test_what_is_no_table_has_no_arrays():
    with pytest.raises(ValueError, match="table must be stages, links, memory, spans; got 'transf"):
        RESULT.to_xarray("transfers")


@pytest.mark.skipif(find_spec("xarray") is not None, reason="xarray is installed")
def test_without_xarray_the_extra_is_named():
    with pytest.raises(ValueError, match=r"pip install 'eastwest\[xarray\]'"):
        RESULT.to_xarray()


@pytest.mark.skipif(find_spec("xarray") is None, reason="needs the extra xarray")
def test_spans_are_arrays_over_stage_kind_and_microbatch():
    spans = RESULT.to_xarray("spans")

    assert dict(spans.sizes) == {"stage": 2, "kind": 2, "microbatch": 2}
    took_s = spans["end_s"] - spans["start_s"]
    assert took_s.sel(kind="B").values.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert np.isnan(RESULT.to_xarray("links")["num_bytes"].sel(source="A", target="A"))

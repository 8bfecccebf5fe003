"""Results: tables, sums and shares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import cases, free_world, plan, unit_workload, world

from des import cross_domain_bytes, simulate

LATENCY_ALONE = (1e300, 1.0)


BY_HAND = {
    "spans": {
        "stage": [0, 0, 1, 1],
        "domain": ["A", "A", "B", "B"],
        "kind": ["F", "B", "F", "B"],
        "microbatch": [0, 0, 0, 0],
        "start_s": [0.0, 10.0, 4.0, 5.0],
        "end_s": [1.0, 12.0, 5.0, 7.0],
    },
    "transfers": {
        "source": ["A", "B"],
        "target": ["B", "A"],
        "stage": [0, 1],
        "kind": ["F", "B"],
        "microbatch": [0, 0],
        "start_s": [1.0, 7.0],
        "end_s": [3.0, 9.0],
        "arrival_s": [4.0, 10.0],
    },
    "stages": {
        "domain": ["A", "B"],
        "device": [0, 0],
        "first_layer": [0, 1],
        "num_layers": [1, 1],
        "busy_s": [3.0, 3.0],
        "idle_s": [9.0, 9.0],
    },
    "links": {
        "source": ["A", "B"],
        "target": ["B", "A"],
        "num_messages": [1, 1],
        "num_bytes": [8.0, 8.0],
        "busy_s": [2.0, 2.0],
    },
    "memory": {
        "domain": ["A", "B"],
        "model_state_bytes": [16.0, 16.0],
        "activation_bytes": [1.0, 1.0],
        "capacity_bytes": [1e30, 1e30],
    },
}
"""Tables of the iteration that `test_tables_by_hand` works out."""


def test_tables_by_hand():
    """One microbatch, forward 1 s and backward 2 s on each side of links of 4 B/s and 1 s.

    A computes 0-1, 8 bytes leave 1-3 and arrive at 4; B computes 4-5 and 5-7; the gradient leaves
    7-9 and arrives at 10; A computes 10-12.
    """
    topology = world("AB", {"AB": (4.0, 1.0), "BA": (4.0, 1.0)})
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=1, message_bytes=8.0)

    result = simulate(topology, workload, plan(0, 1))
    assert result.makespan_s == 12.0
    assert result.utilisation == 6 / (2 * 12)
    assert result.bubble_fraction == 1 - 6 / (2 * 12)
    assert result.to_frame().to_dict("list") == BY_HAND["spans"]
    for name, table in BY_HAND.items():
        assert result.to_frame(name).to_dict("list") == table, name


def test_tables_without_rows_keep_their_columns():
    result = simulate(free_world(1), unit_workload([(1, 2)], num_microbatches=1), plan(0))

    columns = ["source", "target", "stage", "kind", "microbatch", "start_s", "end_s", "arrival_s"]
    assert list(result.to_frame("transfers").columns) == columns
    assert len(result.to_frame("transfers")) == 0
    assert list(result.to_frame("links").columns) == [
        "source",
        "target",
        "num_messages",
        "num_bytes",
        "busy_s",
    ]


def test_an_unknown_table_is_refused():
    result = simulate(free_world(1), unit_workload([(1, 2)], num_microbatches=1), plan(0))

    with pytest.raises(ValueError, match=r"to_frame: table must be stages, links, .*; got 'gantt'"):
        result.to_frame("gantt")


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@given(num_stages=st.integers(1, 8), num_microbatches=st.integers(1, 16))
def test_the_bubble_of_equal_stages_matches_the_closed_form(schedule, num_stages, num_microbatches):
    """(p - 1) / (m + p - 1) of the time: Huang et al., NeurIPS'19; Narayanan et al., SC'21."""
    workload = unit_workload([(1, 2)] * num_stages, num_microbatches=num_microbatches)

    result = simulate(free_world(num_stages), workload, plan(*range(num_stages), schedule=schedule))
    expected = (num_stages - 1) / (num_microbatches + num_stages - 1)
    assert result.bubble_fraction == pytest.approx(expected)
    assert result.utilisation == pytest.approx(1 - expected)


def test_the_bubble_counts_domains_in_use_and_utilisation_all():
    """All work in one of four domains: no bubble, a quarter of the peak."""
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=4)

    result = simulate(free_world(4), workload, plan(2, 2))
    assert result.bubble_fraction == 0.0
    assert result.utilisation == 0.25


def test_stages_of_one_domain_count_once_in_the_bubble():
    """Pattern A, B, A, forward and backward of 1 s: A is busy 4 of 6 s, B 2 of 6 s."""
    workload = unit_workload([(1, 1)] * 3, num_microbatches=1)

    result = simulate(free_world(2), workload, plan(0, 1, 0))
    assert result.makespan_s == 6.0
    assert result.bubble_fraction == 0.5


def test_communication_cost_counts_every_hop_and_cross_domain_bytes_each_message_once():
    """A to C goes over B: 2 hops, both ways, for 3 microbatches of 8 bytes."""
    topology = world("ABC", dict.fromkeys(("AB", "BA", "BC", "CB"), LATENCY_ALONE))
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=3, message_bytes=8.0)
    chosen = plan(0, 2)

    assert simulate(topology, workload, chosen).communication_cost_bytes == 2 * 2 * 3 * 8
    assert cross_domain_bytes(workload, chosen.placement) == 2 * 3 * 8


@given(case=cases(min_domains=2))
def test_tables_sum_up_to_the_result(case):
    topology, workload, chosen = case
    result = simulate(topology, workload, chosen)
    spans, transfers = result.to_frame("spans"), result.to_frame("transfers")
    stages, used_links = result.to_frame("stages"), result.to_frame("links")
    memory = result.to_frame("memory")

    num_stages = len(chosen.placement.stages)
    num_passes = 3 if chosen.schedule.startswith("zb") else 2
    assert len(spans) == num_passes * num_stages * workload.num_microbatches
    assert len(transfers) == used_links["num_messages"].sum()
    assert list(memory["domain"]) == [domain.name for domain in topology.domains]
    assert list(used_links["source"]) == [link.source for link in topology.links]
    assert stages["num_layers"].sum() == workload.num_layers
    assert spans["end_s"].max() == result.makespan_s
    busy_s = (spans["end_s"] - spans["start_s"]).groupby(spans["stage"]).sum()
    assert list(busy_s) == pytest.approx(list(stages["busy_s"]))
    assert used_links["num_bytes"].sum() == pytest.approx(result.communication_cost_bytes)
    assert -1e-9 <= result.bubble_fraction < 1
    assert 0 < result.utilisation <= 1 + 1e-9
    assert result.fits_memory == all(entry.fits for entry in result.memory)

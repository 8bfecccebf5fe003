"""Iterations by recurrence held against simulated ones, and small worlds for them."""

from foreseen_iterations import simulate_foreseeable

from des import NO_CORRECTIONS, simulate
from des.compiled.eligibility import is_foreseeable


def spans(found):
    """Spans as the engine gives them."""
    operations = [found.table.operations[row] for row in found.table.span_rows]
    return [
        (stage, kind, microbatch, *times_s)
        for (kind, microbatch, stage), times_s in zip(operations, found.spans.tolist(), strict=True)
    ]


def transfers(found):
    """Transfers as the engine gives them: link by link."""
    rows = []
    for link, senders, times_s in zip(
        found.links, found.table.sent_rows, found.transfers.tolist(), strict=True
    ):
        for row, times in zip(senders, times_s, strict=True):
            kind, microbatch, stage = found.table.operations[row]
            rows.append((link, stage, "F" if kind == "F" else "B", microbatch, *times))
    return sorted((row for row in rows if row[0] is not None), key=lambda row: row[0])


def assert_equal(found, result):
    """Every figure is that of the engine."""
    assert found.makespan_s == result.makespan_s
    assert spans(found) == [tuple(span) for span in result.spans]
    assert transfers(found) == [tuple(transfer) for transfer in result.transfers]
    assert found.busy_s.tolist() == [stage.busy_s for stage in result.stages]
    for link, busy_s in zip(found.links, found.wire_busy_s.tolist(), strict=True):
        assert link is None or busy_s == result.links[link].busy_s


def assert_foreseen(topology, workload, chosen, corrected=NO_CORRECTIONS):
    assert is_foreseeable(topology, chosen)
    found = simulate_foreseeable(topology, workload, chosen, corrected)
    assert_equal(found, simulate(topology, workload, chosen, corrected))

"""Fidelity: errors of predictions against references, by hand and by laws."""

import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from calibration.cases.case import Measurement
from calibration.fit.errors import fidelity, fidelity_by_regime, fidelity_table
from calibration.fit.relative_errors import relative_errors


def measured(makespan_s, num_bytes=8.0, exposed_s=(1.0, 1.0)):
    return Measurement(
        makespan_s=makespan_s, communication_bytes=num_bytes, exposed_s=tuple(exposed_s)
    )


REFERENCE = [measured(10.0), measured(20.0), measured(40.0), measured(80.0)]
PREDICTED = [measured(11.0), measured(42.0), measured(40.0), measured(72.0)]
"""10 % and 110 % too much, nothing, 10 % too little; the second overtakes the third."""

NAMES = ["a", "b", "c", "d"]


def test_errors_of_makespans_by_hand():
    found = fidelity(NAMES, PREDICTED, REFERENCE).makespan

    assert found.mean == pytest.approx((0.1 + 1.1 + 0.0 + 0.1) / 4)
    assert found.p95 == pytest.approx(1.1)
    assert found.bias == pytest.approx((0.1 + 1.1 + 0.0 - 0.1) / 4)
    assert found.worst == pytest.approx(1.1)
    assert found.worst_case == "b"


def test_kendall_tau_by_hand():
    """Five pairs in the same order, b and c not: (5 - 1) / 6."""
    assert fidelity(NAMES, PREDICTED, REFERENCE).makespan.kendall_tau == pytest.approx(4 / 6)


def test_kendall_tau_with_ties_by_hand():
    """Two pairs in the same order, one tied in the predictions alone: 2 / sqrt(2 x 3)."""
    predicted = [measured(1.0), measured(1.0), measured(2.0)]
    reference = [measured(1.0), measured(2.0), measured(3.0)]

    found = fidelity(NAMES[:3], predicted, reference).makespan

    assert found.kendall_tau == pytest.approx(2 / math.sqrt(6))


def test_p95_leaves_out_one_case_in_twenty():
    reference = [measured(100.0)] * 20
    predicted = [measured(100.0 + case) for case in range(20)]

    assert fidelity([""] * 20, predicted, reference).makespan.p95 == pytest.approx(0.18)


def test_other_figures_by_hand():
    """Half the bytes; 1 s more of 2 s exposed, of 10 s a tenth of which is less."""
    reference, predicted = measured(10.0), measured(10.0, 4.0, (2.5, 0.5))

    found = fidelity(["a"], [predicted], [reference])
    assert (found.communication.bias, found.exposed.bias) == (-0.5, 0.5)
    assert found.makespan.mean == 0.0


def test_little_exposed_communication_is_compared_with_a_tenth_of_the_makespan():
    errors = relative_errors(measured(10.0, 8.0, (0.25, 0.5)), measured(10.0, 8.0, (0.25, 0.25)))

    assert errors.exposed == 0.25


@pytest.mark.parametrize(("num_bytes", "error"), [(0.0, 0.0), (1.0, math.inf)])
def test_bytes_where_the_reference_has_none(num_bytes, error):
    found = fidelity(["a", "b"], [measured(1.0, num_bytes)] * 2, [measured(1.0, 0.0)] * 2)

    assert (found.communication.mean, found.communication.p95) == (error, error)
    assert found.communication.kendall_tau is None


@given(
    pairs=st.lists(st.tuples(st.floats(0.1, 10.0), st.floats(0.1, 10.0)), min_size=2, max_size=20),
    scale=st.sampled_from([0.25, 2.0, 1024.0]),
)
def test_units_do_not_matter_and_bounds_hold(pairs, scale):
    """Any unit of time gives the same errors; bias and p95 lie within the worst one."""
    predicted, reference = ([measured(pair[side]) for pair in pairs] for side in (0, 1))
    names = [str(case) for case in range(len(pairs))]
    found = fidelity(names, predicted, reference).makespan

    others = (
        [measured(scale * each.makespan_s) for each in side] for side in (predicted, reference)
    )
    assert fidelity(names, *others).makespan == found
    assert abs(found.bias) <= found.mean * (1 + 1e-12)
    assert found.mean <= abs(found.worst) * (1 + 1e-12)
    assert found.p95 <= abs(found.worst)
    assert found.kendall_tau is None or -1.0 - 1e-12 <= found.kendall_tau <= 1.0 + 1e-12


@given(times_s=st.lists(st.floats(0.1, 10.0), min_size=1, max_size=20))
def test_a_perfect_prediction_has_no_errors_and_the_same_ranks(times_s):
    all_of_them = [measured(time_s) for time_s in times_s]

    found = fidelity([""] * len(times_s), all_of_them, all_of_them).makespan
    assert (found.mean, found.p95, found.bias, found.worst) == (0.0, 0.0, 0.0, 0.0)
    assert found.kendall_tau == (None if len(set(times_s)) == 1 else pytest.approx(1.0))


def test_each_regime_has_its_own_errors():
    regimes = ["two", "one", "two", "one"]

    found = fidelity_by_regime(regimes, NAMES, PREDICTED, REFERENCE)

    assert list(found) == ["two", "one"]
    assert found["two"] == fidelity(["a", "c"], PREDICTED[::2], REFERENCE[::2])
    assert found["one"] == fidelity(["b", "d"], PREDICTED[1::2], REFERENCE[1::2])


def test_the_table_names_regimes_and_worst_cases():
    rows = {"before": fidelity(NAMES, PREDICTED, REFERENCE)}
    console = Console(file=io.StringIO(), width=200)

    console.print(fidelity_table(rows, title="errors"))

    shown = console.file.getvalue()
    lines = [line.split() for line in shown.splitlines() if line.strip()]
    makespan = [
        "before",
        "4",
        "makespan",
        "32.500",
        "110.000",
        "+27.500",
        "+110.000",
        "b",
        "0.6667",
    ]
    assert makespan in lines
    assert ["communication", "0.000", "0.000", "+0.000", "+0.000", "a", "-"] in lines


@pytest.mark.parametrize(
    ("names", "predicted", "reference"), [([], [], []), (NAMES, PREDICTED, REFERENCE[1:])]
)
def test_cases_without_both_sides_are_refused(names, predicted, reference):
    with pytest.raises(ValueError, match="a name, a prediction and a reference for each case"):
        fidelity(names, predicted, reference)


def test_cases_without_a_regime_are_refused():
    with pytest.raises(ValueError, match="regimes must hold one for each of 4 cases, got 1"):
        fidelity_by_regime(["one"], NAMES, PREDICTED, REFERENCE)


def test_references_that_nothing_can_be_compared_with_are_refused():
    with pytest.raises(ValueError, match="reference: makespan_s must be positive and finite"):
        fidelity(["a"], [measured(1.0)], [measured(0.0)])
    with pytest.raises(ValueError, match="exposed_s must hold one for each of the 2 domains"):
        fidelity(["a"], [measured(1.0, exposed_s=(1.0,))], [measured(1.0)])

"""Plans as users write them: names of domains, a bar between replicas."""

import pytest
from examples import SAMPLE
from hypothesis import given, settings
from hypothesis import strategies as st

from des import Placement, Plan
from des.plan.plan_texts import parse_pipelines, pipelines_text

NAMES = ["East", "Central", "West", "North"]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Replicas on domains of their own, with shares or without."""
    domains = draw(st.permutations(range(4)))
    cuts = sorted(draw(st.sets(st.integers(1, 3))))
    groups = [domains[i:j] for i, j in zip([0, *cuts], [*cuts, 4], strict=True)]
    counts = st.integers(1, 9)
    first, *others = (
        Placement.contiguous(group, [draw(counts) for _ in group]) for group in groups
    )
    shares = tuple(draw(counts) for _ in groups) if draw(st.booleans()) else ()
    return Plan(placement=first, replicas=tuple(others), shares=shares)


@settings(max_examples=SAMPLE)
@given(plan=plans())
def test_what_is_written_is_read_again(plan):
    assert parse_pipelines(pipelines_text(plan, NAMES), NAMES) == (plan.placements, plan.shares)


def test_spaces_and_numbers_are_read_as_well():
    placements, shares = parse_pipelines(" 0*3 , West x 2 |North*4 x2 |1*4 x3 ", NAMES)

    assert [str(one) for one in placements] == ["0*3,2*1", "3*4", "1*4"]
    assert shares == (2, 2, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("East*4 x2 | West*4", "behind each of the 2 replicas or behind none, got 1"),
        ("East*4 | Mars*4", "Mars"),
        ("East*4 |", "each item must be DOMAIN"),
        ("East*4 x0.5", "each item must be DOMAIN"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_pipelines(text, NAMES)

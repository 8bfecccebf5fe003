"""Plans as users write them: names of domains, a bar between replicas."""

import pytest
from examples import SAMPLE
from hypothesis import given, settings
from hypothesis import strategies as st
from sharing import trees

from des import GradientExchange, Placement, Plan
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
    exchange = GradientExchange(tree=draw(st.just(()) | trees(len(groups))))
    return Plan(placement=first, replicas=tuple(others), shares=shares, exchange=exchange)


@settings(max_examples=SAMPLE)
@given(plan=plans())
def test_what_is_written_is_read_again(plan):
    found = parse_pipelines(pipelines_text(plan, NAMES), NAMES)
    assert found == (plan.placements, plan.shares, plan.exchange.tree)


def test_spaces_and_numbers_are_read_as_well():
    found = parse_pipelines(" 0*3 , West x 2 |North*4 x2 ^0|1*4 x3 ^ 1 ", NAMES)

    assert [str(one) for one in found.placements] == ["0*3,2*1", "3*4", "1*4"]
    assert (found.shares, found.tree) == ((2, 2, 3), (0, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("East*4 x2 | West*4", "behind each of the 2 replicas or behind none, got 1"),
        ("East*4 | Mars*4", "Mars"),
        ("East*4 ^0 | West*4", r"first replica must have none above it, got \^0"),
        ("East*4 | West*4 ^0 | North*4", "each but the first of the 3 replicas .*, got 1"),
        ("East*4 |", "each item must be DOMAIN"),
        ("East*4 x0.5", "each item must be DOMAIN"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_pipelines(text, NAMES)

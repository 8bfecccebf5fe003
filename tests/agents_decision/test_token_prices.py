"""Prices in tokens of families that change the training, from published losses."""

import math

import pytest
from examples import SAMPLE
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.decision.token_prices import (
    NOT_WAITED_FOR,
    UNCHANGED,
    beyond_published,
    changes_training,
    is_never_published,
    price_of,
)
from des import DecoupledDiLoCo, DiLoCo, Layer, Placement, Plan, StreamingDiLoCo, Workload


def job(num_parameters: float) -> Workload:
    """One layer with that many parameters, and microbatches for every replica."""
    layer = Layer(
        num_parameters=num_parameters,
        activation_bytes=0.0,
        weight_input_bytes=0.0,
        forward_flops=1.0,
        input_gradient_flops=1.0,
        weight_gradient_flops=1.0,
    )
    return Workload(
        name="", layers=(layer,), num_microbatches=16, tokens_per_microbatch=1, message_bytes=0.0
    )


def copies(count: int, mode: DiLoCo | StreamingDiLoCo | None = None) -> Plan:
    """A replica in each of some domains."""
    first, *others = (Placement(domain_of_layer=(domain,)) for domain in range(count))
    return Plan(placement=first, replicas=tuple(others), synchronisation=mode or DiLoCo())


def factor(count: int, num_parameters: float) -> float:
    found = price_of(copies(count), job(num_parameters)).factor
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("count", "num_parameters", "plain", "found"),
    [(4, 10e9, 2.090, 2.096), (8, 2.4e9, 2.326, 2.351), (2, 35e6, 3.485, 3.508)],
)
def test_a_row_of_the_table_costs_what_the_scaling_law_says(count, num_parameters, plain, found):
    """The data term B / D^0.28 has to fall by the excess loss, from D = 20 tokens a parameter."""
    tokens = 20.0 * num_parameters
    needed = (410.7 / (410.7 / tokens**0.28 - (found - plain))) ** (1.0 / 0.28)

    assert factor(count, num_parameters) == pytest.approx(needed / tokens)


def test_a_lower_loss_is_not_credited():
    assert factor(2, 10e9) == 1.0


def test_between_rows_the_excess_loss_is_halfway_in_the_logarithm():
    """Of 90 and 180 million parameters with 8 replicas: 0.098 and 0.069."""
    middle = math.sqrt(90e6 * 180e6)
    tokens = 20.0 * middle
    share = 0.5 * (0.098 + 0.069) * tokens**0.28 / 410.7

    assert factor(8, middle) == pytest.approx((1.0 - share) ** (-1.0 / 0.28))


@settings(max_examples=SAMPLE)
@given(num_parameters=st.floats(1e7, 1e12))
def test_more_replicas_never_cost_less(num_parameters):
    prices = [factor(count, num_parameters) for count in range(2, 9)]

    assert prices == sorted(prices)
    assert prices[0] >= 1.0


def test_outside_the_table_the_price_is_that_of_its_nearest_model_and_says_so():
    beyond = price_of(copies(4), job(70e9))

    assert beyond.factor == factor(4, 10e9)
    assert "10 billion parameters, the most published" in beyond.note
    assert "35 million parameters, the fewest" in price_of(copies(4), job(1e6)).note
    assert price_of(copies(4), job(5e9)).note == ""


def test_what_nothing_published_tells_has_no_price():
    many, shrunk = copies(9), Plan(placement=Placement.parse("0"), activation_compression=2.0)

    assert price_of(many, job(1e9)).factor is None
    assert "more than 8 replicas: 9" in price_of(many, job(1e9)).note
    assert price_of(shrunk, job(1e9)).factor is None
    assert changes_training(shrunk)


def test_streaming_costs_as_diloco_and_unchanged_training_nothing():
    streaming = price_of(copies(4, StreamingDiLoCo()), job(1e9))

    assert streaming == price_of(copies(4), job(1e9))
    assert price_of(copies(4, DiLoCo(steps_between=1)), job(1e9)) == UNCHANGED
    assert not changes_training(copies(4, DiLoCo(steps_between=1)))


@pytest.mark.parametrize("quorum", [1, 4])
def test_decoupled_costs_as_diloco_or_more_and_is_never_published(quorum):
    """No losses by learners and parameters are published, whatever the quorum."""
    mode = DecoupledDiLoCo(steps_between=30, quorum=quorum)
    price = price_of(copies(4, mode), job(1e9))

    assert price.factor == price_of(copies(4), job(1e9)).factor
    assert price.note == beyond_published(copies(4, mode), job(1e9)) == NOT_WAITED_FOR
    assert is_never_published(mode, job(1e9))
    assert price_of(copies(9, mode), job(1e9)).factor is None


@pytest.mark.parametrize("num_parameters", [1e6, 35e6, 3e9, 10e9, 7e10])
@pytest.mark.parametrize("steps", [10, 30, 31])
@pytest.mark.parametrize("bits", [4.0, 16.0, 32.0])
@pytest.mark.parametrize("kind", [DiLoCo, StreamingDiLoCo, DecoupledDiLoCo])
def test_what_is_never_published_is_beyond_it_for_any_number_of_copies(
    num_parameters, steps, bits, kind
):
    mode, workload = kind(steps_between=steps, bits_per_value=bits), job(num_parameters)
    beyond = [bool(beyond_published(copies(count, mode), workload)) for count in range(2, 10)]

    assert is_never_published(mode, workload) == all(beyond)

"""Laws of a transport: found again where they were planted, judged on placements."""

from dataclasses import replace

import pytest

from calibration.cases.message_cases import SIZES_IN_PRODUCTS, message_cases, message_figures
from calibration.cases.sampler import sample_cases
from calibration.cases.settings import Regime, WorkloadFamily
from calibration.fit.prediction import predict
from calibration.fit.transport_fit import (
    closed_form_error,
    fit_law,
    fit_transport,
    law_lines,
    predict_with_law,
)
from des import Corrections, read_topology
from des.plan.transport_law import TransportLaw
from des.world.packet_transport import PacketTransport

WORLD = read_topology("east_central_west")
FRESH = PacketTransport(congestion="cubic", connections="fresh")
BURSTS = TransportLaw(
    connections="fresh", first_window_bytes=65000.0, segment_bytes=65000.0,
    start_up_round_trips=1.25, efficiency=0.96,
)  # fmt: skip


def with_packets(packets):
    return replace(WORLD, transport=replace(WORLD.transport, packets=packets))


def measured_by(law, cases):
    return [predict(case, Corrections(transport=law)) for case in cases]


def test_cases_are_all_sizes_on_all_different_links():
    cases = message_cases(WORLD)

    figures = {message_figures(case)[1:] for case in cases}
    assert len(cases) == len(figures) * len(SIZES_IN_PRODUCTS)
    assert figures == {(one.bandwidth_bytes_per_s, one.latency_s) for one in WORLD.links}


@pytest.mark.parametrize(
    "planted",
    [
        BURSTS,
        replace(BURSTS, is_paced=True, start_up_round_trips=0.75),
        replace(BURSTS, recovery_round_trips=4.5, recovery_after_products=3.5),
    ],
)
def test_a_planted_law_is_found_again(planted):
    cases = message_cases(with_packets(FRESH))

    found = fit_law(cases, measured_by(planted, cases), FRESH)

    assert found.is_paced == planted.is_paced
    assert found.start_up_round_trips == pytest.approx(planted.start_up_round_trips, rel=1e-6)
    assert found.efficiency == pytest.approx(planted.efficiency, rel=1e-6)
    assert found.recovery_round_trips == pytest.approx(planted.recovery_round_trips, abs=1e-6)
    assert (found.recovery_after_products is None) == (planted.recovery_after_products is None)


def test_open_windows_of_reused_connections_have_no_start_up():
    packets = PacketTransport()
    cases = message_cases(with_packets(packets))

    found = fit_law(cases, [predict(case) for case in cases], packets)

    assert found.connections == "reused"
    assert found.start_up_round_trips == pytest.approx(0.0, abs=1e-9)
    assert found.efficiency == pytest.approx(1.0)


def test_a_law_is_judged_on_placements_and_kept_where_it_helps():
    family = WorkloadFamily(models=("llama2_7b",), num_layers=6, num_microbatches=(2, 4))
    cases = sample_cases(with_packets(FRESH), family, 12, seed=0, regime=Regime())
    reference = [predict_with_law(case, Corrections(transport=BURSTS)) for case in cases]

    helping = fit_transport(BURSTS, cases, reference, predict=predict_with_law)
    useless = fit_transport(
        BURSTS, cases, [predict(case) for case in cases], predict=predict_with_law
    )

    assert helping.kept
    assert helping.corrections.transport == BURSTS
    assert helping.error_after == 0.0
    assert not useless.kept
    assert useless.corrections == Corrections()
    assert "start_up_round_trips = 1.25" in law_lines(BURSTS)


def test_the_closed_form_is_compared_with_single_messages():
    """With one handshake and no losses the law's rounds are those of the closed form, in whole."""
    cases = message_cases(with_packets(FRESH))
    law = replace(BURSTS, start_up_round_trips=1.0, efficiency=1.0)

    assert closed_form_error(cases, measured_by(law, cases), FRESH) < 0.05


def test_a_grid_without_measurements_is_refused():
    with pytest.raises(ValueError, match="for each of at least 1 case, got 0 for 0"):
        fit_law([], [], FRESH)

"""Laws of a transport on a grid: its settings, the nearest law, its files."""

import json
from dataclasses import replace

import numpy as np
import pytest

from calibration.cases.message_cases import SIZES_IN_PRODUCTS, message_figures
from calibration.fit.corrections_file import read_corrections
from calibration.fit.prediction import predict
from calibration.fit.transport_grid import (
    TransportGrid,
    fit_cell,
    fresh_cases,
    grid_cases,
    law_at,
    message_error,
    nearest_cell,
)
from calibration.fit.transport_report import delay_figure, fresh_table, grid_table, law_files
from des import Corrections, read_topology
from des.plan.transport_law import TransportLaw
from des.world.packet_transport import PacketTransport

WORLD = read_topology("east_central_west")
GRID = TransportGrid(
    packets=PacketTransport(congestion="cubic", connections="fresh", queue_bytes=1e6),
    queues_products=(0.5, 2.0),
    loss_fractions=(0.0, 1e-4),
    nums_flows=(1, 4),
)


def law_of(packets):
    """A law that says by its efficiency which settings it is for."""
    efficiency = 0.9 - 0.1 * packets.queue_products - 1e3 * packets.loss_fraction
    return TransportLaw(
        connections="fresh", first_window_bytes=packets.flows * 65000.0, segment_bytes=65000.0,
        start_up_round_trips=1.0, efficiency=efficiency,
    )  # fmt: skip


def measured_by(law, cases):
    return [predict(case, Corrections(transport=law)) for case in cases]


@pytest.fixture(scope="module")
def fitted():
    every = []
    for packets in GRID.cells():
        cases = grid_cases(WORLD, packets)
        every.append(fit_cell(packets, cases, measured_by(law_of(packets), cases)))
    return every


def test_the_cells_are_each_setting_with_each():
    settings = [
        (each.queue_products, each.loss_fraction, each.flows, each.queue_bytes)
        for each in GRID.cells()
    ]

    assert settings == [
        (room, loss, flows, None) for room in (0.5, 2.0) for loss in (0.0, 1e-4) for flows in (1, 4)
    ]


def test_each_cell_has_the_law_that_was_planted(fitted):
    for each in fitted:
        planted = law_of(each.packets)
        assert each.law.efficiency == pytest.approx(planted.efficiency, rel=1e-6)
        assert each.law.first_window_bytes == planted.first_window_bytes
        assert each.error < 1e-6


@pytest.mark.parametrize(
    ("settings", "expected"),
    [((0.6, 2e-5, 3), (0.5, 0.0, 4)), ((1.5, 5e-5, 1), (2.0, 1e-4, 1)), ((2.0, 0, 4), (2.0, 0, 4))],
)
def test_the_nearest_law_has_the_least_distance_on_a_log_scale_and_the_flows_of_the_settings(
    fitted, settings, expected
):
    """The lossless cells stand a factor of ten below the least loss: 2e-5 is nearer to 1e-5."""
    products, loss, flows = settings
    packets = replace(
        GRID.packets, queue_bytes=None, queue_products=products, loss_fraction=loss, flows=flows
    )

    found = nearest_cell(GRID, fitted, packets).packets

    assert (found.queue_products, found.loss_fraction, found.flows) == expected
    law = law_at(GRID, fitted, packets)
    assert law.first_window_bytes == pytest.approx(flows * 65000.0)
    assert law.efficiency == pytest.approx(law_of(found).efficiency, rel=1e-6)


def test_fresh_messages_lie_within_the_grid_and_are_those_of_their_seed():
    settings = list(GRID.between(200, seed=3))
    cases = fresh_cases(WORLD, settings, seed=3)
    sizes = [message_figures(case)[0] for case in cases]

    assert cases == fresh_cases(WORLD, list(GRID.between(200, seed=3)), seed=3)
    assert cases != fresh_cases(WORLD, list(GRID.between(200, seed=4)), seed=4)
    assert all(0.5 <= each.queue_products <= 2.0 and 1 <= each.flows <= 4 for each in settings)
    lossless = sum(each.loss_fraction == 0.0 for each in settings)
    assert 70 < lossless < 130
    assert {each.loss_fraction for each in settings if each.loss_fraction} <= {1e-4}
    assert len(set(sizes)) == 200
    for case, num_bytes in zip(cases, sizes, strict=True):
        _, rate, latency_s = message_figures(case)
        size = num_bytes / (2.0 * latency_s * rate)
        assert SIZES_IN_PRODUCTS[0] <= size <= SIZES_IN_PRODUCTS[-1]


def test_a_fresh_message_is_judged_by_the_nearest_law(fitted):
    settings = list(GRID.between(6, seed=0))
    cases = fresh_cases(WORLD, settings, seed=0)
    laws = [law_at(GRID, fitted, each) for each in settings]
    measured = [measured_by(law, [case])[0] for law, case in zip(laws, cases, strict=True)]

    table = fresh_table(GRID, fitted, cases, measured)

    assert table["error_percent"].max() < 1e-3
    for row, case, found in zip(table.itertuples(), cases, measured, strict=True):
        assert row.error_without_percent == 100.0 * message_error(case, found)
        assert row.error_without_percent > 1.0


def test_files_are_corrections_that_other_commands_read(fitted, tmp_path):
    files = law_files(fitted)

    for each in fitted:
        packets = each.packets
        name = f"queue-{packets.queue_products:g}_loss-{packets.loss_fraction:g}"
        path = tmp_path / f"{name}_flows-{packets.flows}.json"
        path.write_bytes(files.pop(path.name))
        assert read_corrections(path) == Corrections(transport=each.law)
        assert json.loads(path.read_bytes())["fitted_for"] is None
    assert list(files) == ["transports.csv"]
    assert grid_table(fitted)["efficiency"].tolist() == [each.law.efficiency for each in fitted]


def test_the_figure_has_a_line_for_each_law_and_a_panel_for_each_queue(fitted):
    figure = delay_figure(GRID, fitted, rate_bytes_per_s=1e9, round_trip_s=0.1)

    assert [len(panel.marks) for panel in figure.panels] == [4, 4]
    for panel in figure.panels:
        for line in panel.marks:
            assert np.all(np.diff(line.y) > 0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queues_products": ()}, "queues_products must have at least one, got none"),
        ({"queues_products": (0.0,)}, "queue_products must be positive and finite, got 0.0"),
        ({"loss_fractions": (1.0,)}, "loss_fraction must be at least 0 and below 1, got 1.0"),
        ({"nums_flows": (0,)}, "flows must be a whole number from 1 to"),
    ],
)
def test_settings_that_no_transport_has_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(GRID, **change)

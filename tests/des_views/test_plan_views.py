"""Map, heat map and memory of a plan show what the simulation says."""

import numpy as np
import pytest
from strategies import plan, unit_workload, world

from des import lower, memory_timeline, read_topology, simulate
from des.figures.marks import Area, Arrow, Points
from des.figures.palette import VERMILION
from des.views.link_cells import link_cells
from des.views.memory_figure import memory_figure
from des.views.plan_views import known_places, plan_views
from des.views.site_map import scale_places, site_map

LINKS = dict.fromkeys(("AB", "BA", "BC", "CB", "AC", "CA"), (10.0, 0.1))


@pytest.fixture(scope="module")
def case():
    topology = world("ABC", LINKS)
    workload = unit_workload([(1.0, 2.0)] * 3, num_microbatches=2, message_bytes=1.0)
    return topology, workload, plan(0, 0, 1)


def test_the_map_shows_links_in_use_apart_and_says_who_holds_what(case):
    result = simulate(*case)

    figure = site_map(case[0], result)

    arrows = [mark for mark in figure.panels[0].marks if isinstance(mark, Arrow)]
    assert sum(arrow.colour == VERMILION for arrow in arrows) == 2
    assert len(arrows) == 6
    labels = [mark.label for mark in figure.panels[0].marks if isinstance(mark, Points)]
    assert labels == ["in use", "not in use"]
    assert "A holds 2 layers, B holds 1 layers; 2 links are used" in figure.seen


def test_sites_are_as_far_apart_as_their_links_are_slow():
    """Three latencies that a triangle in the plane can have: 3, 4 and 5 ms."""
    latencies = {"AB": 0.003, "BC": 0.004, "AC": 0.005}
    both = latencies | {pair[::-1]: latency for pair, latency in latencies.items()}
    topology = world("ABC", {pair: (10.0, latency) for pair, latency in both.items()})

    at = {name: np.array(place) for name, place in scale_places(topology).items()}

    for pair, latency in latencies.items():
        assert np.linalg.norm(at[pair[0]] - at[pair[1]]) == pytest.approx(1e3 * latency, rel=1e-4)


def test_the_shipped_presets_have_places_on_the_earth():
    places = known_places(read_topology("aws_like"))

    assert places is not None
    assert places["Tokyo"] == pytest.approx((139.69, 35.68))
    assert known_places(read_topology("east_central_west")) is None


def test_cells_are_the_busy_shares_of_the_links(case):
    result = simulate(*case)

    (cells,) = link_cells(case[0], result).panels[0].marks

    use = next(one for one in result.links if (one.source, one.target) == ("A", "B"))
    assert cells.values[0][1] == pytest.approx(100 * use.busy_s / result.makespan_s)
    assert cells.values[0][0] is None
    assert cells.values[2][0] == 0.0


def test_areas_of_memory_end_at_what_the_timeline_says(case):
    result = simulate(*case)
    timeline = memory_timeline(lower(*case), result)

    figure = memory_figure(timeline, makespan_s=result.makespan_s)

    for device, panel in zip(timeline.devices, figure.panels, strict=True):
        tops = [max(mark.high) for mark in panel.marks if isinstance(mark, Area)]
        assert max(tops) == pytest.approx(device.peak_bytes / 1e9)


def test_the_views_of_a_plan_have_own_names(case):
    views = plan_views(case[0], lower(*case))

    names = [figure.name for figure in (*views.first, *views.more)]
    assert names == ["map", "gantt", "links", "memory"]

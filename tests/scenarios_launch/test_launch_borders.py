"""Borders of a plan and settings of NCCL, worked out by hand."""

from dataclasses import replace

import pytest
from bound_cases import bound_plan, job
from hypothesis import given
from hypothesis import strategies as st
from launch_cases import bound_of
from plan_files import bound_case

from agents.judge.nccl_sockets import NcclSettings, SiteBorder, nccl_step_s, site_borders
from agents.judge.step_times import mean_step
from des import Placement


def border(**changes):
    """10 Gbit/s at 50 ms of round trip, for 8 pairs of GPUs: 62.5 MB under way, 7.8 MB a pair."""
    fields = {"bandwidth_bytes_per_s": 1.25e9, "round_trip_s": 0.05, "num_pairs": 8}
    return SiteBorder(source="A", target="B", **(fields | changes))


def test_a_pair_fills_its_share_with_eight_chunks_of_two_channels():
    """7.8 MB over 16 is 488 kB, so chunks of 512 KiB; and three connections of 3 MiB, so four."""
    settings = NcclSettings.of((border(),))

    assert settings.chunk_bytes == 512 * 1024
    assert settings.num_threads * settings.sockets_per_thread == 4
    assert border().pair_bytes_per_s(settings.chunk_bytes) == 1.25e9 / 8
    assert border().pair_bytes_per_s(128 * 1024) == 2 * 2**20 / 0.05
    assert "NCCL_BUFFSIZE=4194304\n" in settings.text()


def test_published_windows_of_nccl_as_it_comes():
    """2 MiB under way: 0.70, 0.52 and 0.31 Gbit/s a pair at 24, 32 and 54 ms."""
    found = [
        8e-9 * border(round_trip_s=ms * 1e-3).pair_bytes_per_s(128 * 1024) for ms in (24, 32, 54)
    ]
    assert found == pytest.approx([0.70, 0.52, 0.31], abs=5e-3)


@given(
    bandwidth=st.floats(1e6, 1e12),
    round_trip_s=st.floats(0.0, 1.0),
    num_pairs=st.integers(1, 1000),
)
def test_settings_are_within_the_bounds_of_nccl(bandwidth, round_trip_s, num_pairs):
    one = border(bandwidth_bytes_per_s=bandwidth, round_trip_s=round_trip_s, num_pairs=num_pairs)
    settings = NcclSettings.of((one,))

    assert 1 <= settings.num_threads <= 16
    assert settings.num_threads * settings.sockets_per_thread <= 64
    assert settings.chunk_bytes <= 4 * 2**20
    if settings.chunk_bytes < 4 * 2**20:
        assert one.pair_bytes_per_s(settings.chunk_bytes) == pytest.approx(bandwidth / num_pairs)


def test_no_border_asks_for_more_than_chunks_of_4_mib_and_64_connections():
    endless = border(bandwidth_bytes_per_s=1e12, round_trip_s=1.0)

    assert NcclSettings.of((endless,)) == NcclSettings(
        chunk_bytes=4 * 2**20, num_threads=8, sockets_per_thread=8
    )


def test_without_borders_nccl_stays_as_it_comes():
    assert NcclSettings.of(()) == NcclSettings(
        chunk_bytes=128 * 1024, num_threads=1, sockets_per_thread=1
    )


def test_a_pipeline_has_both_directions_of_its_border():
    found = site_borders(bound_case())

    assert [(one.source, one.target, one.num_pairs) for one in found] == [
        ("A", "B", 8),
        ("B", "A", 8),
    ]
    assert {one.bandwidth_bytes_per_s for one in found} == {1.25e9}
    assert {one.round_trip_s for one in found} == {0.02}


def test_a_step_over_windows_of_nccl_is_as_on_links_of_their_rate():
    """8 pairs of 2 MiB under way at 20 ms fill two thirds of the link; larger chunks fill it."""
    bound = bound_case()
    borders = site_borders(bound)
    links = tuple(
        replace(link, bandwidth_bytes_per_s=min(link.bandwidth_bytes_per_s, 8 * 2 * 2**20 / 0.02))
        for link in bound.topology.links
        if {link.source, link.target} == {"A", "B"}
    )
    world = replace(bound.topology, links=links)

    slower_s = mean_step(world, bound.workload, bound.plan, bound.corrections)[0]
    assert nccl_step_s(bound, borders, 128 * 1024) == pytest.approx(slower_s)
    assert slower_s > bound.step_s
    assert nccl_step_s(bound, borders, NcclSettings.of(borders).chunk_bytes) == bound.step_s


def test_copies_have_the_borders_of_their_ring():
    others = (Placement.parse("1*32"), Placement.parse("2*32"))
    plan = bound_plan("0*32", replicas=others)
    bound = bound_of(plan, workload=job(num_microbatches=33))
    found = {(one.source, one.target) for one in site_borders(bound)}

    assert found == {(one, other) for one in "ABC" for other in "ABC" if one != other}


@pytest.mark.parametrize(
    ("field", "value"), [("bandwidth_bytes_per_s", 0.0), ("round_trip_s", -1.0), ("num_pairs", 0)]
)
def test_a_border_that_cannot_be_is_refused(field, value):
    with pytest.raises(ValueError, match=f"border A->B: {field} must be"):
        border(**{field: value})

"""Calibration of a training by packets: what it needs, and what it finds."""

from dataclasses import replace

import pytest
from ns3_extra import is_ns3_installed

from calibration import ReferenceRunError, WorkloadFamily
from calibration.loop import Order, Subject, calibrate
from des import NO_CORRECTIONS, build_workload, read_topology
from des.world.packet_transport import PacketTransport

WORLD = read_topology("east_central_west")
JOB = build_workload("llama2_7b", num_layers=6, num_microbatches=2, sequence_length=512)


def subject(**packets):
    transport = replace(WORLD.transport, packets=PacketTransport(**packets))
    return Subject(
        topology=replace(WORLD, transport=transport),
        workload=JOB,
        schedule="gpipe",
        family=WorkloadFamily(
            models=("llama2_7b",),
            num_layers=6,
            num_microbatches=(2, 2),
            microbatch_sizes=(1, 2),
            sequence_lengths=(512,),
            schedules=("gpipe",),
        ),
        backend="ns3",
        num_placements=9,
        num_probed=2,
    )


@pytest.mark.skipif(is_ns3_installed(), reason="ns-3 is installed")
def test_without_the_extra_a_training_is_told_what_to_install():
    with pytest.raises(ReferenceRunError, match=r"pip install 'eastwest\[ns3\]'"):
        subject()


@pytest.mark.soak  # 84 single messages of up to 640 MB before the placements
@pytest.mark.skipif(not is_ns3_installed(), reason="the extra ns3 is not installed")
def test_a_law_of_fresh_connections_corrects_a_training():
    """Messages of 4 and 8 MB spend most of their time in slow start, which the law knows."""
    fresh = subject(congestion="cubic", connections="fresh", queue_bytes=2.0**30)
    assert fresh.reference == "ns3, cubic, fresh connections"

    found = calibrate(fresh, Order(number=0, kind="fit", in_force=NO_CORRECTIONS))

    assert found.corrections.transport is not None
    assert found.corrections.transport.connections == "fresh"
    assert found.after.mean < 0.2 * found.before.mean

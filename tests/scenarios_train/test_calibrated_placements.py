"""Placements by which a training is calibrated, as its reference can afford them."""

import pytest
from ns3_extra import is_ns3_installed

from des import build_workload, read_topology
from des.worlds import EAST_CENTRAL_WEST
from scenarios.train.calibration_subject import subject_of
from scenarios.train.training_config import Config


@pytest.mark.parametrize("calibration", ["pairwise", "ns3"])
@pytest.mark.parametrize("num_microbatches", [2, 32])
def test_packets_are_simulated_for_a_few_microbatches_of_the_job(calibration, num_microbatches):
    """Placements of the analytical networks have those of the job."""
    if calibration == "ns3" and not is_ns3_installed():
        pytest.skip("the extra ns3 is not installed")
    config = Config(model="llama2_7b", calibration=calibration)
    workload = build_workload("llama2_7b", num_microbatches=num_microbatches)

    subject = subject_of(
        config, topology=read_topology(EAST_CENTRAL_WEST), workload=workload, schedule="1f1b"
    )

    expected = min(num_microbatches, 4) if calibration == "ns3" else num_microbatches
    assert subject.workload.num_microbatches == expected
    found = {case.workload.num_microbatches for case in subject.cases("fit", 0, ())}
    assert found == {expected}

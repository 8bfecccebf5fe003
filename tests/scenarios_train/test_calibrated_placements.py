"""Placements by which a training is calibrated, as its reference can afford them."""

import pytest
from logged import log_text, network_of
from ns3_extra import is_ns3_installed

from calibration.loop import LoggedSubject
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


def test_logs_of_training_are_a_reference_of_their_own(tmp_path):
    topology = read_topology(network_of(tmp_path))
    (tmp_path / "run.log").write_text(log_text(2.0), encoding="utf-8")
    job = {"topology": topology, "workload": build_workload("llama2_7b"), "schedule": "1f1b"}
    logs = tmp_path / "run.log"

    subject = subject_of(Config(calibration="runs", calibration_logs=logs), **job)
    assert subject == LoggedSubject(topology=topology, logs=logs)
    assert subject.reference == f"logs of training in {logs}"
    for wrong in (Config(calibration="runs"), Config(calibration_logs=logs)):
        with pytest.raises(ValueError, match="calibration_logs must be given with --calibration"):
            subject_of(wrong, **job)

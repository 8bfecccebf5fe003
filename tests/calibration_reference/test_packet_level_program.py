"""The packet-level backend: its files, its program, and what it says."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from reference_programs import fake_program, gpu_case, small_case

from calibration.measuring.measure import measure_all, measure_case
from calibration.reference.binaries import ReferenceRunError
from calibration.reference.ns3 import Ns3


@pytest.fixture
def ns3(tmp_path):
    """What a user of the packet-level backend brings; its program is the analytical one."""
    folder = tmp_path / "astra-ns3"
    folder.mkdir()
    (folder / "config.txt").write_text(
        "ENABLE_QCN 1\nTOPOLOGY_FILE ../old/topology.txt\nFLOW_FILE flow.txt\n", "utf-8"
    )
    (folder / "topology.txt").write_text("4 1 3\n3\n", "utf-8")
    return Ns3(
        binary=fake_program(folder / "AstraSimNetwork", "ns3"),
        config=folder / "config.txt",
        physical_topology=folder / "topology.txt",
    )


@pytest.mark.parametrize(("case", "dimensions"), [(small_case(), ["3"]), (gpu_case(), ["4", "3"])])
def test_the_packet_level_backend_gets_its_files_and_is_read(case, dimensions, ns3):
    folder = ns3.binary.parent
    ns3.physical_topology.write_text(f"{case.num_npus + 1} 1 {case.num_npus}\n", "utf-8")

    measured = measure_case(case, "astra-ns3", ns3=ns3)

    unaware = measure_case(case, "unaware")
    if case.granularity == "domain":
        assert measured == unaware
    else:  # its messages queue, so receivers wait for each other's parts, which takes signals
        assert unaware.makespan_s < measured.makespan_s < 1.05 * unaware.makespan_s
    logical = json.loads((folder / "seen-logical-topology-configuration").read_text("utf-8"))
    assert logical == {"logical-dims": dimensions}
    assert (folder / "seen-network-configuration").read_text("utf-8").splitlines() == [
        "ENABLE_QCN 1",
        f"TOPOLOGY_FILE {ns3.physical_topology.resolve()}",
        "FLOW_FILE flow.txt",
    ]
    words = (folder / "seen-words").read_text("utf-8")
    assert ("--comm-group-configuration=empty" in words) == (case.granularity == "domain")


def test_a_configuration_that_names_no_topology_gets_one(ns3):
    ns3.config.write_text("ENABLE_QCN 1\n", "utf-8")

    measure_case(small_case(), "astra-ns3", ns3=ns3)

    seen = (ns3.binary.parent / "seen-network-configuration").read_text("utf-8")
    assert seen == f"TOPOLOGY_FILE {ns3.physical_topology.resolve()}\nENABLE_QCN 1\n"


def test_the_packet_level_backend_needs_its_program_and_files(ns3):
    with pytest.raises(
        ReferenceRunError, match="backend astra-ns3: needs ASTRA-sim's program AstraSimN"
    ):
        measure_case(small_case(), "astra-ns3")
    with pytest.raises(
        ReferenceRunError, match="backend astra-ns3: needs ASTRA-sim's program AstraSimN"
    ):
        measure_all([small_case()], "astra-ns3", num_workers=1)
    with pytest.raises(ReferenceRunError, match="nowhere: must be a program, got no such file"):
        measure_case(small_case(), "astra-ns3", ns3=replace(ns3, binary=Path("nowhere")))
    with pytest.raises(ValueError, match="ns3: nowhere: cannot be read: No such file"):
        measure_case(small_case(), "astra-ns3", ns3=replace(ns3, config=Path("nowhere")))
    with pytest.raises(ValueError, match=r"transport\.endpoints is overlapped"):
        measure_case(small_case("overlapped"), "astra-ns3", ns3=ns3)


def test_a_physical_topology_of_another_number_of_hosts_is_refused_before_the_start(ns3):
    ns3.physical_topology.write_text("5 1 4\n", "utf-8")
    with pytest.raises(ValueError, match="no switches must be the 3 NPUs of the case, got 4"):
        measure_case(small_case(), "astra-ns3", ns3=ns3)

    ns3.physical_topology.write_text("hosts\n", "utf-8")
    with pytest.raises(ValueError, match="first line must have the numbers of nodes, switches"):
        measure_case(small_case(), "astra-ns3", ns3=ns3)


def test_runs_with_other_files_are_other_runs(ns3):
    before = ns3.version()
    ns3.physical_topology.write_text("5 1 4\n", "utf-8")

    assert ns3.version() != before


def test_a_packet_level_program_that_crashes_is_an_error(ns3):
    fake_program(ns3.binary, "crash")

    with pytest.raises(ReferenceRunError, match="exit code: -11"):
        measure_case(small_case(), "astra-ns3", ns3=ns3, num_attempts=1)

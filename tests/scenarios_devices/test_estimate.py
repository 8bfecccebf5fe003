"""`python -m scenarios.devices estimate`: times of known groups, measured cells, bad input."""

import json

import pytest
from command_output import assert_refused

from calibration.measured.collective_table import SHIPPED_TABLE, read_measured_table
from des.costs.device_collectives import all_reduce_time
from des.costs.device_groups import DeviceGroup
from des.devices.figures_file import shipped_link_figures
from des.devices.presets import simulated
from scenarios.devices.command import main
from scenarios.devices.pictures import measure_cells


def estimated(*argv, capsys):
    """Facts that the command prints as JSON."""
    assert main(["estimate", *argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_times_are_those_of_the_library(capsys):
    facts = estimated("--simulate", "dgx-h100", "--bytes", "1MiB,100e6", capsys=capsys)

    group = DeviceGroup.of_server(simulated("dgx-h100"), shipped_link_figures())
    assert facts["gpus"] == 8
    for found, size in zip(facts["times"], (2**20, 100e6), strict=True):
        expected = all_reduce_time(group, size)
        assert found["algorithm"] == "ring"
        assert found["time_s"] == expected.time_s
        assert found["times_s"] == dict(expected.times_s)


@pytest.mark.parametrize(
    ("row", "size", "most"),
    [
        (("a100_dgx", 8, 8), 67108864, 0.1),
        (("h100_dgx", 8, 8), 8388608, 0.05),
        (("h100_dgx", 4, 4), 67108864, 0.05),
        (("a100_pairwise_nvlink", 4, 4), 4194304, 0.05),
        (("h100_pairwise_nvlink", 4, 4), 67108864, 0.05),
        (("a100_dgx", 2, 1), 67108864, 0.05),
        (("a100_dgx", 16, 8), 67108864, 0.15),
    ],
)
def test_estimates_are_close_to_measured_cells(row, size, most, capsys):
    node, workers, each = row
    measured_s = next(
        cell.time_s
        for cell in read_measured_table(SHIPPED_TABLE).cells
        if cell.row == row and cell.payload_bytes == size
    )
    flags = ("--machine", node, "--gpu-numbers", ",".join(map(str, range(each))))
    servers = ("--servers", str(workers // each))

    facts = estimated(*flags, *servers, "--bytes", str(size), capsys=capsys)
    assert facts["times"][0]["time_s"] == pytest.approx(measured_s, rel=most)


@pytest.mark.parametrize(
    ("flags", "gigabytes_per_s"),
    [
        ("--simulate dgx-a100 --bytes 1GiB", 200),
        ("--simulate a100-pairs-4 --gpu a100_pcie --gpu-numbers 0,1 --bytes 12GiB", 208),
        ("--simulate dgx-h100 --bytes 1GiB", 370),
        (
            "--simulate dgx-a100 --servers 3 --nic-bandwidth 100Gbit/s --bytes 131072008",
            96.45,
        ),
        ("--simulate dgx-a100 --servers 2 --nic-bandwidth 100Gbit/s --bytes 8GiB", 91),
    ],
)
def test_bus_bandwidths_published_elsewhere_are_met_within_15_per_cent(
    flags, gigabytes_per_s, capsys
):
    """Outputs of nccl-tests in its issues 149, 178, 212, 119 and 100; none of them is fitted."""
    (found,) = estimated(*flags.split(), capsys=capsys)["times"]

    assert found["bus_bandwidth_bytes_per_s"] == pytest.approx(gigabytes_per_s * 1e9, rel=0.15)


def test_text_has_ring_times_reason_and_origins(capsys):
    argv = ["estimate", "--simulate", "dgx-a100", "--servers", "4", "--algorithm", "best"]
    assert main(argv) == 0

    shown = capsys.readouterr().out
    assert "all_reduce over GPUs 0,1,2,3,4,5,6,7 of dgx-a100 on each of 4 servers" in shown
    assert "ring: 0,1,2,3,4,5,6,7" in shown
    assert "tree: least time; ring" in shown
    assert "fitted to a100 cells" in shown
    assert "network: line rates of the nearest cards" in shown


def test_cards_and_models_can_be_said(capsys):
    fast, slow = (
        estimated("--simulate", "dgx-a100", "--servers", "2", *flags, capsys=capsys)["times"][0]
        for flags in ((), ("--nic-bandwidth", "20Gbit/s"))
    )
    assert slow["time_s"] > 4 * fast["time_s"]
    other = estimated("--simulate", "nvswitch", "--gpu", "generic", capsys=capsys)
    assert "no cells of generic" in other["origins"][0]


def test_a_message_and_other_collectives(capsys):
    pair = ("--simulate", "dgx-1-v100", "--gpu-numbers", "0,3", "--collective", "point_to_point")
    assert estimated(*pair, capsys=capsys)["times"][0]["algorithm"] == "point_to_point"
    gather = ("--simulate", "dgx-1-v100", "--collective", "all_gather")
    assert estimated(*gather, capsys=capsys)["times"][0]["algorithm"] == "ring"


def test_the_plot_has_the_measured_cells_of_the_machine(tmp_path, capsys):
    path = tmp_path / "times.png"
    estimated("--machine", "a100_dgx", "--gpu-numbers", "0,1", "--servers", "2",
              "--plot", str(path), capsys=capsys)  # fmt: skip

    assert path.read_bytes().startswith(b"\x89PNG")
    figures = shipped_link_figures()
    inside = DeviceGroup.of_server(simulated("dgx-h100"), figures, places=range(4))
    assert len(measure_cells(inside)) == 8
    across = DeviceGroup.of_server(
        simulated("dgx-a100"), figures, num_servers=2, network=figures.of_network("a100_dgx")
    )
    assert len(measure_cells(across)) == 8
    assert measure_cells(DeviceGroup.of_server(simulated("dgx-1-v100"), figures)) == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--simulate", "nvswitch"), "server nvswitch, GPU0: GPU model must be one of p100, "),
        (("--simulate", "dgx-a100", "--gpu", "a10"), ".*got a10"),
        (
            ("--simulate", "dgx-a100", "--gpu-numbers", "9"),
            "--gpu-numbers must be some of 0,1,.*got 9",
        ),
        (("--simulate", "dgx-a100", "--bytes", "1qq"), "--bytes unknown unit 'qq'"),
        (("--simulate", "dgx-a100", "--bytes", "-1"), ".*--bytes must be positive"),
        (("--simulate", "dgx-a100", "--servers", "0"), "--servers must be at least 1, got 0"),
        (("--simulate", "dgx-a100", "--servers", "2", "--network", "x"), "network: must be one"),
        (("--simulate", "dgx-a100", "--nic-bandwidth", "fast"), "--nic-bandwidth "),
        (
            ("--simulate", "dgx-a100", "--gpu-numbers", "0,0"),
            "server dgx-a100: GPUs must be .*different",
        ),
        (
            ("--simulate", "nvswitch", "--gpu", "a100", "--servers", "2"),
            ".*network cards must be known .*--fitted-network NAME or --nic-bandwidth RATE ",
        ),
        (("--simulate", "dgx-h100", "--algorithm", "hierarchical"), "all_reduce: algorithm must"),
        (("--simulate", "dgx-h100", "--collective", "point_to_point"), ".*GPUs must be 2, got 8"),
        (("--simulate", "dgx-h100", "--machine", "a100_dgx"), "--machine must be alone"),
        (("--machine", "a100_dxg"), "node: unknown kind 'a100_dxg'"),
        (("--simulate", "dgx-h100", "--figures", "nowhere.json"), ".*nowhere.json"),
        (("--simulate", "dgx-h100", "--plot", "times.pdf"), "--plot must end in .png"),
        (("--bytes", "1"), "exactly one of --file, --simulate, --here and --nvml"),
    ],
)
def test_bad_input_is_refused_in_one_line(argv, message, tmp_path, capsys):
    assert_refused(main, ["estimate", *argv], message, capsys, unwritten=tmp_path / "times.pdf")

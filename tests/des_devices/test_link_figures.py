"""Link figures: data sheets by hand, topologies with them, files that are read back, bad input."""

import json
from dataclasses import replace

import pytest

from des.devices.figures_file import (
    SHIPPED,
    link_figures_json,
    read_link_figures,
    shipped_link_figures,
)
from des.devices.gpu_kinds import GPU_KINDS, GPU_PORTS, gpu_ports_named
from des.devices.gpus import GpuTopology
from des.devices.link_figures import DeviceFigures, NetworkConstants, TransferConstants
from des.devices.presets import KIND_NAMES, KINDS, simulated

CONSTANTS = TransferConstants(
    launch_s=20e-6,
    floor_s=40e-6,
    nvlink_step_s=1e-6,
    nvlink_fraction=0.5,
    pcie_step_s=6e-6,
    pcie_fraction=0.75,
)
FIGURES = DeviceFigures(
    pooled=CONSTANTS,
    models={"a100": replace(CONSTANTS, nvlink_fraction=0.6)},
    networks={
        "cluster": NetworkConstants(
            gpu_bandwidth_bytes_per_s=6e9, server_bandwidth_bytes_per_s=20e9, step_s=1e-5
        )
    },
    algorithm="ring",
    least_bytes=2.0**20,
    source="made up",
)


@pytest.mark.parametrize(
    ("model", "token", "gigabytes_per_s"),
    [
        ("p100", "NV1", 20.0),
        ("v100", "NV2", 50.0),
        ("a100", "NV12", 300.0),
        ("h100", "NV18", 450.0),
        ("b200", "NV18", 900.0),
        ("v100", "PIX", 15.75),
        ("a100", "NODE", 31.5),
        ("h100", "PHB", 63.0),
        ("a100", "SYS", 31.5 * 10 / 24),
        ("p100", "SOC", 15.75 * 10 / 24),
    ],
)
def test_line_rates_are_those_of_data_sheets(model, token, gigabytes_per_s):
    rate = GPU_PORTS[model].line_rate_bytes_per_s(token)

    assert rate == pytest.approx(gigabytes_per_s * 1e9)


def test_a_link_is_the_line_rate_times_the_fraction_with_the_step_of_its_kind():
    a100 = FIGURES.of_model("a100")

    assert a100.link("NV12").bandwidth_bytes_per_s == 300e9 * 0.6
    assert a100.link("NV12").latency_s == 1e-6
    assert a100.link("PXB").bandwidth_bytes_per_s == 31.5e9 * 0.75
    assert a100.link("PXB").latency_s == 6e-6
    assert FIGURES.of_model("h100").link("NV18").bandwidth_bytes_per_s == 450e9 * 0.5


def test_models_say_whether_their_constants_are_their_own():
    assert "fitted to a100 cells" in FIGURES.of_model("a100_80").origin
    assert "no cells of b200" in FIGURES.of_model("b200").origin


@pytest.mark.parametrize("name", [None, "a10", "A100"])
def test_unknown_models_are_refused_with_the_known_ones(name):
    with pytest.raises(ValueError, match=r"model must be one of p100, v100, .*, generic"):
        FIGURES.of_model(name)
    assert gpu_ports_named("generic").nvlink_bytes_per_s == 25e9


def test_tokens_that_no_pair_of_the_model_has_are_refused():
    with pytest.raises(ValueError, match="a100: token must have at most 12 NVLinks, got 'NV18'"):
        FIGURES.of_model("a100").link("NV18")
    with pytest.raises(ValueError, match="two GPUs, got 'X'"):
        FIGURES.of_model("a100").link("X")
    cut = simulated("dgx-h100")
    cut = replace(cut, gpus=tuple(replace(gpu, model=None) for gpu in cut.gpus))
    with pytest.raises(ValueError, match=r"server dgx-h100, GPU0: .*got none"):
        FIGURES.links_of(cut)


def test_networks_by_name():
    assert FIGURES.of_network("cluster").way_out_bytes_per_s(8) == 20e9
    with pytest.raises(ValueError, match=r"network: must be one of cluster; got 'clster'"):
        FIGURES.of_network("clster")


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_classes_keep_nccls_figures_and_models_are_a_further_choice(kind):
    """Servers without figures have the floats that policies were trained on."""
    server = simulated(kind)
    plain = GpuTopology.of_server(server)

    assert plain == GpuTopology.of_classes(server.gpu_tokens, numa_of_gpu=plain.numa_of_gpu)
    if server.gpus[0].model is None:
        with pytest.raises(ValueError, match="model must be one of"):
            GpuTopology.of_server(server, figures=FIGURES)
    else:
        own = GpuTopology.of_server(server, figures=FIGURES)
        link = FIGURES.of_gpu(server.gpus[0]).link(server.gpu_tokens[0][1])
        assert own.bandwidth_bytes_per_s[0][1] == link.bandwidth_bytes_per_s
        assert own.numa_of_gpu == plain.numa_of_gpu


def test_the_rate_of_a_gpus_own_nvlinks_wins_over_the_data_sheet():
    server = simulated("dgx-a100")
    slow = replace(server, gpus=tuple(replace(gpu, nvlink_bytes_per_s=20e9) for gpu in server.gpus))

    assert FIGURES.links_of(slow)[0][1].bandwidth_bytes_per_s == 12 * 20e9 * 0.6


def test_of_two_models_the_slower_end_counts():
    server = simulated("dgx-a100")
    mixed = replace(server, gpus=(replace(server.gpus[0], model="gh200"), *server.gpus[1:]))

    assert FIGURES.links_of(mixed)[0][1].bandwidth_bytes_per_s == 12 * 25e9 * 0.5


def test_every_gpu_of_topology_files_and_kinds_of_servers_has_ports():
    not_nvidia = {"mi300x", "east_west_120"}
    kinds = {gpu.model for kind in KINDS for gpu in simulated(kind).gpus} - {None}

    assert all(gpu_ports_named(name) for name in {*GPU_KINDS, *kinds} - not_nvidia)


def test_files_are_read_back_as_they_were(tmp_path):
    path = tmp_path / "figures.json"
    path.write_bytes(link_figures_json(FIGURES, {"errors": 1}))

    assert read_link_figures(path) == FIGURES


def test_the_shipped_file_is_read_and_names_its_measurements():
    figures = shipped_link_figures()

    assert set(figures.models) == {"a100", "a100_pcie", "h100", "h100_nvl"}
    assert "MIT" in figures.source
    assert figures.algorithm == "ring"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version"),
        ({"pooled": {}}, "pooled.launch_s: must be given"),
        ({"models": {"a1000": None}}, "models"),
        ({"extra": 1}, "unknown key"),
    ],
)
def test_damaged_files_are_refused_by_name_and_field(tmp_path, change, message):
    path = tmp_path / "figures.json"
    path.write_text(json.dumps(json.loads(SHIPPED.read_text("utf-8")) | change))

    with pytest.raises(ValueError, match=f"figures.json: .*{message}"):
        read_link_figures(path)


def test_unknown_models_in_a_file_are_refused(tmp_path):
    path = tmp_path / "figures.json"
    content = json.loads(SHIPPED.read_text("utf-8"))
    content["models"]["a1000"] = content["pooled"]
    path.write_text(json.dumps(content))

    with pytest.raises(ValueError, match=r"models: must be some of .*; got 'a1000'"):
        read_link_figures(path)


def test_impossible_constants_are_refused():
    with pytest.raises(ValueError, match="pcie_fraction must be above 0 and at most 1"):
        replace(CONSTANTS, pcie_fraction=1.5)
    with pytest.raises(ValueError, match="step_s must be finite and not negative"):
        NetworkConstants(
            gpu_bandwidth_bytes_per_s=1.0, server_bandwidth_bytes_per_s=1.0, step_s=float("nan")
        )

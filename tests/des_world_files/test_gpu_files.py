"""GPU models and layer times in both forms of topology files: read, written and refused."""

import re

import pytest
from written_worlds import JSON, edited_yaml, read

from des import read_topology
from des.devices.gpu_kinds import GPU_KINDS
from des.world.files.topology_writer import to_yaml
from des.world.files.topology_yaml import from_yaml
from des.world.kernel_figures import FITTED_KERNELS
from des.worlds import EAST_CENTRAL_WEST


def yaml_with(lines: str) -> str:
    """The shipped world whose first domain has further keys."""
    return edited_yaml("num_gpus: 8", f"num_gpus: 8\n      {lines}")


@pytest.mark.parametrize("name", GPU_KINDS)
def test_a_gpu_model_gives_its_figures(tmp_path, name):
    (domain, *_) = read(tmp_path, JSON | {"gpu": name}, ".json").domains
    model = GPU_KINDS[name]

    assert domain.gpu_peak_flops_per_s == model.peak_flops_per_s
    assert domain.gpu_memory_bytes == model.memory_bytes
    assert domain.gpu_memory_bandwidth_bytes_per_s == model.memory_bandwidth_bytes_per_s


def test_a_figure_beats_that_of_the_model(tmp_path):
    world = read(tmp_path, JSON | {"gpu": "h100", "gpu_memory": "94GB"}, ".json")

    assert world.domains[0].gpu_memory_bytes == 94e9
    assert world.domains[0].gpu_peak_flops_per_s == GPU_KINDS["h100"].peak_flops_per_s


def test_the_shipped_world_has_layer_times_from_its_fraction():
    world = read_topology(EAST_CENTRAL_WEST)

    assert [domain.kernels for domain in world.domains] == [None] * 3
    assert world.domains[0].gpu_peak_flops_per_s == GPU_KINDS["east_west_120"].peak_flops_per_s


def test_layer_times_from_shapes_are_read_and_written(tmp_path):
    kernels = {"matmul_efficiency": 0.7, "layer_launch": "2ms", "attention_share": 0.5}
    kernels |= {"graphs": "partial", "hides_all_to_alls": True}
    world = read(
        tmp_path,
        JSON | {"layer_times": ["shapes", "fraction", "shapes"], "kernels": [kernels, None, None]},
        ".json",
    )

    changed, fraction, fitted = world.domains
    assert (changed.kernels.matmul_efficiency, changed.kernels.layer_launch_s) == (0.7, 2e-3)
    assert (changed.kernels.attention_share, FITTED_KERNELS.attention_share) == (0.5, 1.0)
    assert (changed.kernels.graphs, changed.kernels.hides_all_to_alls) == ("partial", True)
    assert changed.kernels.memory_efficiency == FITTED_KERNELS.memory_efficiency
    assert (fraction.kernels, fitted.kernels) == (None, FITTED_KERNELS)
    assert from_yaml(to_yaml(world)) == world


def test_the_whole_time_of_the_gpus_is_the_jobs(tmp_path):
    plain = JSON.copy()
    plain.pop("attainable_fraction", None)
    world = read(tmp_path, plain | {"layer_times": ["shapes", "fraction", "shapes"]}, ".json")

    assert [domain.attainable_fraction for domain in world.domains] == [1.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"gpu": "h100"}, "shapes of matrices on h100"),
        ({"gpu": "v100"}, "shapes of matrices on v100_32"),
        ({"gpu": "h100", "attainable_fraction": 0.4}, "FLOPs at 0.4 of the peak"),
        ({"gpu": "h100", "layer_times": "fraction"}, "FLOPs at 0.5 of the peak"),
        ({"gpu": "east_west_120"}, "FLOPs at 0.5 of the peak"),
        ({"gpu_peak": "120TFLOP/s"}, "FLOPs at 0.5 of the peak"),
    ],
)
def test_layer_times_that_go_unsaid_are_of_shapes_where_the_kind_of_gpu_is_known(
    tmp_path, keys, said
):
    plain = {key: value for key, value in JSON.items() if key != "attainable_fraction"}
    world = read(tmp_path, plain | keys, ".json")

    assert {domain.layer_times for domain in world.domains} == {said}
    assert from_yaml(to_yaml(world)) == world


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("gpu: h1000", "gpu must be one of v100_32, a100_40, a100_80, h100, "),
        ("layer_times: guessed", "layer_times"),
        ("kernels: {layer_launch: 1ms}", "kernels must be left out with layer_times fraction"),
        (
            "layer_times: shapes\n      kernels: {matmul_efficiency: 1.5}",
            "matmul_efficiency must be above 0 and at most 1, got 1.5",
        ),
    ],
)
def test_bad_keys_are_named(tmp_path, lines, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read(tmp_path, yaml_with(lines), ".yaml")

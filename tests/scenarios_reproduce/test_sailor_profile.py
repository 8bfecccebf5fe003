"""The shipped profile of OPT-350M gives the stage times of Sailor's measured runs."""

import csv
from dataclasses import replace
from importlib.resources import files

import pytest
from strategies import unit_domain

from des import Parallelism, build_workload
from des.costs.layer_work import work_before
from des.job.transformer import embedding_parameters, layer_parameters
from des.job.workload import Workload
from des.world.files.profile_files import read_layer_profile
from des.world.kernel_figures import FITTED_KERNELS

FOLDER = files("scenarios.reproduce") / "data" / "sailor"
GPUS = {"GH-96": "gh200"}


def rows(name: str) -> list[dict[str, str]]:
    """Rows of a file of the artifact."""
    return list(csv.DictReader((FOLDER / name).read_text("utf-8").splitlines()))


@pytest.fixture(scope="module")
def opt() -> Workload:
    """One sequence a microbatch."""
    model = str(FOLDER / "opt_350m.yaml")
    return build_workload(model, sequence_length=2048, recomputation="none")


def test_sizes_are_those_of_the_profiled_model(opt):
    """Layer 0 is the embedding there, layer 1 the first with attention."""
    profiled = {
        int(row["layer"]): int(row["params_floats"])
        for row in rows("layer_memory.csv")
        if (row["model"], row["tp"]) == ("OPT-350", "1")
    }
    assert profiled[0] == embedding_parameters(opt.shape.architecture)
    assert profiled[1] == layer_parameters(opt.shape.architecture)


def test_stages_of_the_measured_runs_take_the_sums_of_their_layers(opt):
    """To rounding, but for the first layer: the profiler saw it slower, and the median does not."""
    sizes = {row["run_id"]: int(row["mbs"]) for row in rows("real_runs.csv")}
    stages = rows("real_runs_stages.csv")
    for stage in stages:
        gpu, tensor = GPUS.get(stage["gpu_type"], stage["gpu_type"]), int(stage["tp"])
        profile = read_layer_profile(str(FOLDER / "opt_350m_profile.csv"), gpu=gpu)
        domain = replace(unit_domain("a"), kernels=FITTED_KERNELS, profile=profile)
        job = replace(opt, shape=replace(opt.shape, batch_size=sizes[stage["run_id"]]))
        work = work_before(job, domain, Parallelism(tensor=tensor), exchange_s=1e3)
        first, end = int(stage["first_layer"]), int(stage["first_layer"]) + int(stage["n_layers"])
        ours = slice(max(0, first - 1), min(24, end - 1) + 1)

        for sums, column in ((work.forward, "fwd_s"), (work.backward, "bwd_s")):
            inside = sums[ours]
            found_s = (inside[-1] - inside[0]) / tensor
            allowed = 0.035 if first == 0 else 1e-4
            assert found_s == pytest.approx(float(stage[column]), rel=allowed)
    assert len(stages) > 40

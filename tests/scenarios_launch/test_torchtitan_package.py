"""Launches as torchtitan reads them: meshes, modules of stages and orders; needs no GPU."""

import os
import runpy
import tomllib
from types import SimpleNamespace

import pytest
from launch_cases import drawn_bound

from agents.trainers.plan_checks import launches_of
from agents.trainers.torchtitan import TORCHTITAN
from scenarios.launch.launch_files import launch_files

SEEDS = range(20)
NEEDS = "no torchtitan with what it imports; pip install torchtitan triton"


@pytest.fixture(scope="module")
def titan():
    """Parts of torchtitan that a launch is read by."""
    pytest.importorskip("torchtitan.models.llama3", reason=NEEDS, exc_type=ImportError)
    return SimpleNamespace(
        pipeline=pytest.importorskip("torchtitan.distributed.pipeline_parallel"),
        dims=pytest.importorskip("torchtitan.distributed").ParallelDims,
        config=pytest.importorskip("torchtitan.config").ParallelismConfig,
        dist=pytest.importorskip("torch.distributed"),
        store=pytest.importorskip("torch.testing._internal.distributed.fake_pg").FakeStore,
    )


def launches(seed):
    """The tables of each launch of a drawn plan, its replicas, files, and sites of its ranks."""
    bound = drawn_bound("torchtitan", seed)
    files = launch_files(bound).files
    own = launches_of(TORCHTITAN, bound.plan)
    for number, replicas in enumerate(own):
        folder = "" if len(own) == 1 else f"replica-{number}/"
        rows = [line.split(" ", 3) for line in files[f"{folder}hosts.txt"].splitlines()[1:]]
        sites = [row[3] for row in rows for _ in range(int(row[2]))]
        yield bound, folder, files, replicas, sites, tomllib.loads(files[f"{folder}config.toml"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
def test_ranks_of_the_mesh_are_in_the_site_of_their_stage(titan, seed):
    for bound, _, _, replicas, sites, tables in launches(seed):
        degrees = tables["parallelism"] | {"pipeline_parallel_schedule_csv": ""}
        names = [domain.name for domain in bound.topology.domains]
        needed = [{names[own[rank].domain] for own in replicas} for rank in range(len(replicas[0]))]
        for rank in range(0, len(sites), 4):
            titan.dist.init_process_group(
                "fake", store=titan.store(), rank=rank, world_size=len(sites)
            )
            dims = titan.dims.from_config(titan.config(**degrees), len(sites))
            dims.build_mesh()
            stage = 0
            if degrees["pipeline_parallel_degree"] > 1:
                stage = dims.get_mesh("pp").get_local_rank()
            titan.dist.destroy_process_group()
            assert sites[rank] in needed[stage]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
def test_orders_are_read_as_they_are_simulated(titan, seed, tmp_path):
    schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    for _, folder, files, replicas, _, tables in launches(seed):
        degrees = tables["parallelism"]
        if not degrees.get("pipeline_parallel_schedule_csv"):
            continue
        path = tmp_path / "schedule.csv"
        path.write_text(files[f"{folder}schedule.csv"], encoding="utf-8")
        pipeline, count = degrees["pipeline_parallel_degree"], len(replicas[0])
        mine = titan.pipeline._get_pp_rank_to_stage_indices_mapping(
            0, pipeline, degrees["pipeline_parallel_schedule"], count
        )
        stages = [
            SimpleNamespace(
                num_stages=count,
                group_size=pipeline,
                group_rank=0,
                stage_index=stage,
                is_last=False,
                has_backward=True,
            )
            for stage in mine
        ]
        training = tables["training"]
        number = training["local_batch_size"] // degrees["pipeline_parallel_microbatch_size"]
        made = schedules._PipelineScheduleRuntime(
            stages, n_microbatches=number, loss_fn=lambda *_: 0, scale_grads=False
        )
        made._load_csv(os.fspath(path))
        rows = path.read_text("utf-8").splitlines()
        found = [",".join(map(str, made.pipeline_order[rank])) for rank in range(pipeline)]
        assert found == rows


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [3, 7])
def test_the_module_of_the_configuration_splits_a_model_as_the_plan_does(titan, seed, tmp_path):
    torch = pytest.importorskip("torch")
    for bound, folder, files, replicas, _, tables in launches(seed):
        if folder:
            trainer = "torchtitan.experiments.torchft.trainer"
            pytest.importorskip(trainer, reason="no torchft", exc_type=ImportError)
        (tmp_path / "config.toml").write_text(files[f"{folder}config.toml"], encoding="utf-8")
        script = tmp_path / "eastwest_config.py"
        script.write_text(files[f"{folder}eastwest_config.py"], encoding="utf-8")
        config = runpy.run_path(str(script))["train"]()
        assert config.parallelism.tensor_parallel_degree == bound.plan.parallelism[0].tensor
        with torch.device("meta"):
            model = config.model_spec.model.build()
        num_values = sum(one.numel() for one in model.parameters())
        assert num_values == pytest.approx(sum(bound.workload.num_parameters), rel=1e-3)
        parts = tables["parallelism"].get("module_fqns_per_model_part", [])
        for stage, names in zip(replicas[0], parts, strict=False):
            part = titan.pipeline._split_module(model, names)
            assert len(part.layers) == stage.num_layers

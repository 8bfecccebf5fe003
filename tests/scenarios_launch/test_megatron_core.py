"""Launches as megatron-core reads them: layouts, ranks and configuration; needs no GPU."""

import re

import pytest
from launch_cases import drawn_bound

from scenarios.launch.launch_files import launch_files

SEEDS = range(20)
NEEDS = "no megatron-core; pip install --no-deps megatron-core"


def flags_of(files):
    """Flags of args.txt with their values, empty where there is none."""
    return {
        line.split(" ", 1)[0].removeprefix("--"): line.partition(" ")[2]
        for line in files["args.txt"].splitlines()
    }


@pytest.fixture(scope="module", params=SEEDS)
def launched(request):
    """A drawn plan, its flags, and the site of each rank."""
    bound = drawn_bound("megatron", request.param)
    files = launch_files(bound).files
    rows = re.findall(r"(?m)^\d+ \S+ (\d+) (.+)$", files["hosts.txt"])
    return bound, flags_of(files), [site for count, site in rows for _ in range(int(count))]


@pytest.mark.filterwarnings("ignore")
def test_layers_of_each_rank_are_those_of_the_plan(launched):
    module = pytest.importorskip(
        "megatron.core.transformer.pipeline_parallel_layer_layout", reason=NEEDS
    )
    kinds = pytest.importorskip("megatron.core.transformer.enums").LayerType
    bound, flags, _ = launched
    pipeline = int(flags["pipeline-model-parallel-size"])
    if pipeline == 1:
        assert "pipeline-model-parallel-layout" not in flags
        return
    layout = module.PipelineParallelLayerLayout(flags["pipeline-model-parallel-layout"], pipeline)
    layout.validate_layer_layout(int(flags["num-layers"]), None)

    stages = bound.plan.stages_of_replicas[0]
    found = [
        layout.layout[index % pipeline][index // pipeline].count(kinds.decoder)
        for index in range(len(stages))
    ]
    assert found == [stage.num_layers for stage in stages]


@pytest.mark.filterwarnings("ignore")
def test_ranks_of_each_stage_are_in_its_site(launched):
    state = pytest.importorskip("megatron.core.parallel_state", reason=NEEDS)
    bound, flags, sites = launched
    sizes = {
        name: int(flags[f"{kind}-parallel-size"])
        for name, kind in (
            ("tp", "tensor-model"),
            ("pp", "pipeline-model"),
            ("cp", "context"),
        )
    }
    data = len(sites) // (sizes["tp"] * sizes["pp"] * sizes["cp"])
    order = "tp-cp-ep-pp-dp" if "use-tp-pp-dp-mapping" in flags else "tp-cp-ep-dp-pp"
    groups = state.RankGenerator(ep=1, dp=data, order=order, **sizes).get_ranks("pp")

    names = [domain.name for domain in bound.topology.domains]
    needed = {
        tuple(names[stage.domain] for stage in stages[: sizes["pp"]])
        for stages in bound.plan.stages_of_replicas
    }
    assert {tuple(sites[rank] for rank in group) for group in groups} == needed
    assert len(groups) == len(sites) // sizes["pp"]


@pytest.mark.filterwarnings("ignore")
def test_the_configuration_is_accepted(launched):
    config = pytest.importorskip(
        "megatron.core.transformer.transformer_config", reason=NEEDS
    ).TransformerConfig
    torch = pytest.importorskip("torch")
    _, flags, _ = launched
    full = flags.get("recompute-granularity") == "full"
    made = config(
        num_layers=int(flags["num-layers"]),
        hidden_size=int(flags["hidden-size"]),
        ffn_hidden_size=int(flags["ffn-hidden-size"]),
        num_attention_heads=int(flags["num-attention-heads"]),
        num_query_groups=int(flags.get("num-query-groups", flags["num-attention-heads"])),
        tensor_model_parallel_size=int(flags["tensor-model-parallel-size"]),
        pipeline_model_parallel_size=int(flags["pipeline-model-parallel-size"]),
        context_parallel_size=int(flags["context-parallel-size"]),
        pipeline_model_parallel_layout=flags.get("pipeline-model-parallel-layout"),
        sequence_parallel="sequence-parallel" in flags,
        recompute_granularity="full" if full else None,
        recompute_method="uniform" if full else None,
        recompute_num_layers=1 if full else None,
        bf16=True,
        params_dtype=torch.bfloat16,
        pipeline_dtype=torch.bfloat16,
    )
    assert made.num_layers == int(flags["num-layers"])

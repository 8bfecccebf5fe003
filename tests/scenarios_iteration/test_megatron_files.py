"""Command lines of Megatron-LM: flags, layers of stages, and ranks over the hosts of sites."""

import re

import pytest
from bound_cases import site, sites
from command_output import assert_refused
from hypothesis import given
from hypothesis import strategies as st
from plan_files import TRAIN, write_sites, write_train

from des import GradientExchange, Parallelism, Placement
from scenarios.iteration.command import main
from scenarios.iteration.megatron_command import flags_of_text, read_megatron
from scenarios.iteration.megatron_layout import EvenLayout, layout_layers
from scenarios.iteration.megatron_plan import megatron_plan

LAYOUTS = [
    ("Et*27|t*27|t*26,L", 3, (27, 27, 26)),
    ("Et*2|t*2|t*2|t*2L", 2, (2, 2, 2, 2)),
    ("E,t*3|(tt|)*2,t*2,L", 4, (3, 2, 2, 2)),
    ("Et*8,L", 1, (8,)),
    ("E(t|)*3tL", 4, (1, 1, 1, 1)),
    ("E(t|t)*2L", 3, (1, 2, 1)),
    ("Et*0t|tL", 2, (1, 1)),
]
"""Layouts, ranks, and decoder layers of each stage, as megatron-core 0.16.1 reads them: chunk ``k``
of the text is ``PipelineParallelLayerLayout(text, P).layout[k % P][k // P]``."""


@pytest.mark.parametrize(("text", "num_ranks", "layers"), LAYOUTS)
def test_layouts_are_read_as_megatron_core_reads_them(text, num_ranks, layers):
    assert layout_layers(text, num_ranks, sum(layers)) == layers


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("et*4|t*4L", "must be of E embedding, t layer, m MTP layer, L loss, .* got 'e'"),
        ("Et*4 |t*4L", "got ' '"),
        ("Et*4|t*4", "must begin with E and end with L"),
        ("t*4|t*4L", "must begin with E and end with L"),
        ("E(t(tt)*2)|t*3L", "parentheses must not lie in parentheses"),
        ("Et*2|t*2|t*4L", "stages must be a multiple of --pipeline-model-parallel-size 2; got 3"),
        ("Et*4|t*3L", "must have as many t as --num-layers 8; got 7"),
        ("Et*4|mt*4L", "must have one L and no m"),
        ("E|t*8L", "stage 0 must have a layer, .* got embedding alone"),
        ("Et*4||t*4|L", "stage 1 must have a layer, .* got nothing alone"),
        ("E(t|)*999999(t|)*999999tL", "must have at most"),
    ],
)
def test_layouts_that_cannot_be_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        layout_layers(text, 2, 8)


@given(
    num_ranks=st.integers(1, 6),
    num_chunks=st.integers(1, 3),
    share=st.integers(1, 4),
    first=st.none() | st.integers(1, 4),
    last=st.none() | st.integers(1, 4),
)
def test_even_layouts_have_all_layers_and_the_ends_as_given(
    num_ranks, num_chunks, share, first, last
):
    ends = [one * num_chunks for one in (first, last) if one is not None]
    if num_ranks < len(ends):
        return
    num_layers = sum(ends) + share * num_chunks * (num_ranks - len(ends))
    found = EvenLayout(
        num_layers=num_layers,
        num_ranks=num_ranks,
        num_chunks=num_chunks,
        first=None if first is None else first * num_chunks,
        last=None if last is None else last * num_chunks,
    ).stage_layers()

    assert sum(found) == num_layers
    assert len(found) == num_ranks * num_chunks
    assert found[0] == (first or (last if num_ranks == 1 and last else share))
    assert found[-1] == (last or (first if num_ranks == 1 and first else share))


def test_flags_are_found_in_scripts_of_several_forms():
    text = """
    A=3; export B="4"
    DATA="
        --five $B --seven \\"a b\\" "
    MODEL=(--one $A # a note --no
      --two=${A}0
    )
    run.py ${MODEL[@]} --three_more "x|y" --four --one 5 --six $UNKNOWN
    """
    assert flags_of_text(text) == {
        "one": ("5",),
        "two": ("30",),
        "three-more": ("x|y",),
        "four": (),
        "five": ("4",),
        "seven": ("a b",),
        "six": ("$UNKNOWN",),
    }


def plan_from_entry(*, num_gpus=16, text=TRAIN, world=None, order=(0, 1, 2), **flags):
    """Plan and data ranks of the command line on three sites of some GPUs."""
    added = "".join(f" --{name.replace('_', '-')} '{value}'" for name, value in flags.items())
    world = world or sites(*(site(name, num_gpus) for name in "ABC"))
    return megatron_plan(read_megatron(f"{text.rstrip()}{added}"), world, order)


EACH = Parallelism(tensor=8, pipeline=2)


def test_ranks_are_laid_over_the_sites_in_their_order():
    """Four stages of a server each: two in C, then two in A."""
    plan, data = plan_from_entry(order=(2, 0, 1), decoder_first_pipeline_num_layers="5")

    assert data == 1
    assert plan.placement == Placement.parse("2*5+9,0*18")
    assert plan.parallelism == (EACH, Parallelism(), EACH)
    assert (plan.schedule, plan.sends) == ("1f1b", "blocking")
    assert plan.exchange == GradientExchange(overlapped=True)


def test_consecutive_ranks_form_a_stage_of_all_replicas():
    """32 GPUs: stages of 2 replicas on 16, so one of the two stages in each of two sites."""
    plan, data = plan_from_entry(pipeline_model_parallel_size="2", use_distributed_optimizer="")

    assert data == 2
    assert plan.placement == Placement.parse("0*16,1*16")
    assert plan.parallelism[0] == Parallelism(tensor=8, data=2, sharding="optimiser")
    assert not plan.exchange.sharded


def test_consecutive_ranks_form_a_replica_where_they_are_told_to():
    flags = {"pipeline_model_parallel_size": "2", "use_tp_pp_dp_mapping": ""}
    plan, data = plan_from_entry(**flags, use_distributed_optimizer="")

    assert data == 1
    assert plan.placements == (Placement.parse("0*32"), Placement.parse("1*32"))
    assert plan.parallelism[1] == Parallelism(tensor=8, pipeline=2, sharding="optimiser")
    assert plan.exchange.sharded
    apart, _ = plan_from_entry(
        **flags, use_distributed_optimizer="", num_distributed_optimizer_instances="2"
    )
    assert not apart.exchange.sharded


def test_several_replicas_of_a_site_are_its_data_ranks():
    plan, data = plan_from_entry(
        num_gpus=32, nnodes="8", pipeline_model_parallel_size="2", use_tp_pp_dp_mapping=""
    )

    assert data == 2
    assert plan.placements == (Placement.parse("0*32"), Placement.parse("1*32"))
    assert plan.parallelism[0] == Parallelism(tensor=8, data=2, pipeline=2)


def test_chunks_of_a_rank_go_round_the_sites():
    """Eight stages on four ranks; groups of six microbatches are 1.5 times the ranks."""
    plan, _ = plan_from_entry(
        num_layers_per_virtual_pipeline_stage="4",
        microbatch_group_size_per_virtual_pipeline_stage="6",
    )
    assert plan.placement == Placement.parse("0*8,1*8,0*8,1*8")
    assert (plan.schedule, plan.sends) == ("interleaved_1f1b_1.5x", "overlapped")
    assert plan.parallelism[0] == EACH

    alone, _ = plan_from_entry(num_gpus=32, num_virtual_stages_per_pipeline_rank="2")
    assert alone.placement == Placement.parse("0*32")
    assert alone.schedule == "interleaved_1f1b"
    assert alone.parallelism[0] == Parallelism(tensor=8, pipeline=4, chunks=2)


WRONG = {
    "--micro-batch-size: must be a whole number of at least 1; got '0'": {"micro_batch_size": "0"},
    "--global-batch-size: must be a multiple of micro-batch size 3 x data-parallel size 1, 3; "
    "got 32": {"micro_batch_size": "3"},
    "--global-batch-size: must be a multiple of micro-batch size 1 x data-parallel size 4, 4; "
    "got 2": {"pipeline_model_parallel_size": "1", "global_batch_size": "2"},
    "world size must be a multiple of tensor x pipeline x context, 40; got 32 GPUs": {
        "pipeline_model_parallel_size": "5",
        "decoder_first_pipeline_num_layers": "4",
    },
    "--num-layers: must be divisible by the pipeline-parallel size 3": {
        "pipeline_model_parallel_size": "3"
    },
    "--nnodes x --nproc-per-node must be at most the 48 GPUs of the sites; got 56": {"nnodes": "7"},
    "stage 0 of 32 GPUs must lie in one site; got A and B": {"pipeline_model_parallel_size": "1"},
    "--no-overlap-p2p-communication: must be left out": {"no_overlap_p2p_communication": ""},
    "--expert-tensor-parallel-size: must be the tensor-parallel size 8, or 1 with an ": {
        "expert_tensor_parallel_size": "2",
        "expert_model_parallel_size": "2",
    },
    "or 1 with an --expert-model-parallel-size above 1; got 1": {
        "expert_tensor_parallel_size": "1"
    },
    "--recompute-granularity: must be selective, or full with": {
        "recompute_granularity": "full",
        "recompute_method": "block",
    },
    "--decoder-first-pipeline-num-layers: must not be given with --pipeline-model": {
        "decoder_first_pipeline_num_layers": "4",
        "pipeline_model_parallel_layout": "Et*8|t*8|t*8|t*8L",
    },
    "--num-distributed-optimizer-instances: must be 1 or the 1 sets of sites": {
        "num_distributed_optimizer_instances": "3"
    },
    "must be a multiple of the 8 GPUs of a server where a site has several replicas; got 4 in A": {
        "tensor_model_parallel_size": "4",
        "pipeline_model_parallel_size": "2",
        "use_tp_pp_dp_mapping": "",
    },
}


@pytest.mark.parametrize("message", WRONG)
def test_a_command_line_that_cannot_be_run_is_refused_by_its_flag(message):
    with pytest.raises(ValueError, match=re.escape(message)):
        plan_from_entry(**WRONG[message])


@pytest.mark.parametrize(
    ("flags", "given_flags", "message"),
    [
        ({}, [], "train.sh: --hidden-size: must be given, or the model by --model; got neither"),
        ({}, ["--model", "llama2_13b"], "--num-layers: must be the 40 of llama2_13b, got 32"),
        (
            {"num_layers_per_virtual_pipeline_stage": "4", "global_batch_size": "7"},
            ["--model", "llama2_7b"],
            "trainer megatron: the last group of 4 microbatches must hold at least .* got 3",
        ),
        ({}, ["--model", "llama2_7b", "--microbatches", "4"], "microbatches must not be given"),
    ],
)
def test_the_command_refuses_in_one_line(flags, given_flags, message, tmp_path, capsys):
    argv = ["--plan", write_train(tmp_path, **flags), "--network", write_sites(tmp_path)]
    argv += [*given_flags, "--out", tmp_path / "out"]
    assert_refused(main, map(str, argv), f".*{message}", capsys, unwritten=tmp_path / "out")


@pytest.mark.parametrize(
    ("backend", "kernel"), [("unfused", "plain"), ("flash", "flash"), ("auto", None)]
)
def test_the_kernel_of_attention_is_that_of_the_backend(backend, kernel):
    added = f" --recompute-activations --attention-backend {backend}"

    assert read_megatron(TRAIN.rstrip() + added).attention == kernel


@pytest.mark.parametrize(
    ("flags", "precision"),
    [
        ("", "bf16"),
        ("--fp8-format hybrid --fp8-recipe delayed", "fp8"),
        ("--fp8-format e4m3 --fp8-recipe mxfp8", "mxfp8"),
        ("--fp4-format e2m1", "nvfp4"),
    ],
)
def test_the_format_of_passes_is_that_of_the_flags(flags, precision):
    assert read_megatron(f"{TRAIN.rstrip()} {flags}").precision == precision


@pytest.mark.parametrize(
    ("flags", "is_whole"),
    [
        ({}, False),
        ({"expert_tensor_parallel_size": "8"}, False),
        ({"expert_tensor_parallel_size": "1", "sequence_parallel": ""}, True),
    ],
)
def test_experts_are_cut_over_tensor_groups_unless_a_flag_says_that_they_are_whole(flags, is_whole):
    plan, _ = plan_from_entry(
        pipeline_model_parallel_size="2", expert_model_parallel_size="2", **flags
    )

    assert (plan.parallelism[0].expert, plan.parallelism[0].whole_experts) == (2, is_whole)


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        ({}, ("fp32", "flash")),
        ({"grad_reduce_in_bf16": "", "attention_backend": "unfused"}, ("bf16", "none")),
        ({"recompute_activations": ""}, ("fp32", "selective")),
        ({"recompute_granularity": "full", "recompute_method": "uniform"}, ("fp32", "full")),
    ],
)
def test_types_and_recomputation_are_those_of_the_flags(flags, kept):
    added = "".join(f" --{name.replace('_', '-')} {value}" for name, value in flags.items())
    command = read_megatron(TRAIN.rstrip() + added)

    assert (command.gradient_precision, command.recomputation) == kept

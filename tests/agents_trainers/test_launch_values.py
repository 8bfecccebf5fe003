"""Arguments and configurations as values: what trainers would not notice is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.trainers.megatron_arguments import (
    MegatronCommand,
    layout_text,
    model_lines,
    plan_lines,
)
from agents.trainers.torchtitan_config import (
    CheckpointTable,
    OuterTable,
    ParallelismTable,
    QuantizationTable,
    TorchtitanConfig,
    TrainingTable,
    layers_of_modules,
    llama_sizes,
    module_names,
    read_config,
)
from agents.trainers.torchtitan_orders import orders_text, read_orders
from des import ARCHITECTURES
from des.schedules import stage_orders
from scenarios.iteration.megatron_command import read_megatron
from scenarios.iteration.megatron_layout import layout_layers

RUN = MegatronCommand(
    tensor=8,
    pipeline=2,
    context=1,
    expert=1,
    whole_experts=False,
    micro_batch_size=1,
    global_batch_size=32,
    sequence_length=4096,
    num_layers=32,
    stage_layers=(17, 15),
    group_size=None,
    replica_order=False,
    num_gpus=None,
    optimiser_instances=1,
    shards_optimiser=False,
    sequence_parallel=True,
    overlaps_gradients=True,
    gradient_precision="fp32",
    recomputation="flash",
    attention="flash",
    precision="bf16",
    architecture=None,
)
DEGREES = ParallelismTable(
    tensor_parallel_degree=8,
    enable_sequence_parallel=True,
    context_parallel_degree=1,
    data_parallel_replicate_degree=1,
    data_parallel_shard_degree=1,
    fsdp_reshard_after_forward="never",
    pipeline_parallel_degree=2,
    pipeline_parallel_schedule="1F1B",
    pipeline_parallel_schedule_csv="schedule.csv",
    pipeline_parallel_microbatch_size=1,
    module_fqns_per_model_part=module_names((17, 15)),
)
CONFIG = TorchtitanConfig(
    model=llama_sizes(ARCHITECTURES["llama2_7b"], 32, in_pipeline=True),
    training=TrainingTable(
        seq_len=4096, local_batch_size=32, global_batch_size=32, dtype="float32"
    ),
    parallelism=DEGREES,
    activation_checkpoint=CheckpointTable(mode="none"),
    quantization=QuantizationTable(linear="bf16"),
)
OUTER = OuterTable(
    replica_id=1,
    group_size=2,
    sync_steps=20,
    fragment_sync_delay=0,
    should_quantize=True,
    module_fqns_per_model_fragment=(),
    num_fragments=1,
    min_replica_size=2,
)

stage_counts = st.lists(st.integers(1, 30), min_size=1, max_size=12)


@given(layers=stage_counts)
def test_layouts_are_read_as_they_are_written(layers):
    assert layout_layers(layout_text(layers), 1, sum(layers)) == tuple(layers)


@given(
    recomputation=st.sampled_from(["flash", "none", "selective", "full"]),
    precision=st.sampled_from(["bf16", "fp8", "mxfp8", "nvfp4"]),
    gradients=st.sampled_from(["fp32", "bf16"]),
    flags=st.tuples(*[st.booleans()] * 4),
    instances=st.integers(1, 3),
)
def test_flags_are_read_as_they_are_written(recomputation, precision, gradients, flags, instances):
    attention = {"none": "plain", "selective": "plain"}.get(recomputation, "flash")
    run = replace(
        RUN,
        recomputation=recomputation,
        attention=attention,
        precision=precision,
        gradient_precision=gradients,
        replica_order=flags[0],
        shards_optimiser=flags[1],
        sequence_parallel=flags[2],
        overlaps_gradients=flags[3],
        optimiser_instances=instances,
    )
    assert read_megatron("\n".join(plan_lines(run))) == run


DENSE = [
    name
    for name, own in ARCHITECTURES.items()
    if own.experts is None and own.latent_attention is None
]


@pytest.mark.parametrize("name", DENSE)
def test_flags_of_dense_models_are_read_as_the_model(name):
    own = ARCHITECTURES[name]
    lines = [*model_lines(own, own.num_layers, 2048), *plan_lines(replace(RUN, pipeline=1))]
    text = "\n".join(lines).replace("--num-layers 32", f"--num-layers {own.num_layers}")
    found = read_megatron(text).architecture

    parts = ("qkv", "output", "ffn", "norm")
    biases = tuple(part for part in parts if own.adds_bias(part))
    kept = {"name": name, "biases": biases, "qk_norm": own.qk_norm}
    kept["attention_window"] = None  # none reaches further back than a sequence of 2048
    assert replace(found, **kept) == replace(own, **kept)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stage_layers": (32, 0)}, "every stage must have a layer, .* does not check it"),
        ({"stage_layers": (17, 14)}, "must add up to 32"),
        ({"stage_layers": (10, 11, 11)}, "a multiple of 2 stages"),
    ],
)
def test_stages_that_megatron_takes_and_should_not_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(RUN, **changes)


@pytest.mark.parametrize(
    "changes",
    [{"num_norms": 4}, {"attention_sinks": True}, {"whole_qk_norm": True}, {"biases": ("ffn",)}],
)
def test_models_without_flags_are_refused(changes):
    own = replace(ARCHITECTURES["llama2_7b"], **changes)
    with pytest.raises(ValueError, match="flags are written for models without"):
        list(model_lines(own, 32, 4096))


@given(layers=stage_counts)
def test_modules_of_stages_are_read_as_they_are_written(layers):
    assert layers_of_modules(module_names(layers), sum(layers)) == tuple(layers)


@pytest.mark.parametrize(
    "parts",
    [
        [["tok_embeddings", "layers.0"], ["layers.1", "norm", "output"]],
        [["tok_embeddings", "layers.0"], ["layers.99", "norm", "lm_head"]],
        [["tok_embeddings", "layers.0"], ["norm", "lm_head"]],
        [["tok_embeddings", "layers.1"], ["layers.0", "norm", "lm_head"]],
        [["tok_embeddings", "layers.0", "layers.1"], ["norm", "lm_head"]],
        [["layers.0"], ["layers.1", "norm", "lm_head"]],
        [],
    ],
)
def test_modules_that_torchtitan_would_lose_are_refused(parts):
    with pytest.raises(ValueError, match="would lose modules without a word"):
        layers_of_modules(tuple(map(tuple, parts)), 2)


@given(
    numbers=st.tuples(*[st.integers(1, 8)] * 3),
    schedule=st.sampled_from(["", "schedule.csv"]),
    layers=st.sampled_from([(17, 15), (1, 31)]),
    outer=st.sampled_from([None, OUTER, replace(OUTER, should_quantize=False)]),
    formats=st.tuples(st.sampled_from(["none", "full"]), st.sampled_from(["bf16", "fp8", "mxfp8"])),
)
def test_configurations_are_read_as_they_are_written(numbers, schedule, layers, outer, formats):
    config = replace(
        CONFIG,
        parallelism=replace(
            DEGREES,
            tensor_parallel_degree=numbers[0],
            data_parallel_replicate_degree=numbers[1],
            data_parallel_shard_degree=numbers[2],
            pipeline_parallel_schedule_csv=schedule,
            module_fqns_per_model_part=module_names(layers),
        ),
        activation_checkpoint=CheckpointTable(mode=formats[0]),
        quantization=QuantizationTable(linear=formats[1]),
        fault_tolerance=outer,
    )
    assert read_config(config.text()) == config


def with_stages(*layers, outer=None, **changes):
    """The configuration with other stages."""
    degrees = replace(DEGREES, module_fqns_per_model_part=module_names(layers), **changes)
    return replace(CONFIG, parallelism=degrees, fault_tolerance=outer)


@pytest.mark.parametrize(
    ("layers", "changes", "message"),
    [
        ((32, 0), {}, "with a layer in each stage; got layers \\(32, 0\\)"),
        ((10, 11, 11), {}, "every rank must have equally many stages"),
        ((17, 15), {"pipeline_parallel_schedule": "ZBVZeroBubble"}, "two where they go there"),
        ((8, 8, 8, 8), {"outer": OUTER}, "exchanges the first stage's only, without a word"),
        ((17, 15), {"outer": replace(OUTER, num_fragments=2)}, "one fragment in a pipeline"),
    ],
)
def test_configurations_that_torchtitan_takes_and_should_not_are_refused(layers, changes, message):
    with pytest.raises(ValueError, match=message):
        with_stages(*layers, **changes)


@pytest.mark.parametrize("changes", [{"sync_steps": 21}, {"fragment_sync_delay": 10}])
def test_fragments_that_torchft_cannot_exchange_are_refused(changes):
    with pytest.raises(ValueError, match="fragments must divide the"):
        replace(OUTER, num_fragments=2, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"gated_ffn": False},
        {"qk_norm": True},
        {"tied_embeddings": True},
        {"num_positions": 2048},
        {"head_size": 64},
    ],
)
def test_models_that_are_not_of_the_llama_module_are_refused(changes):
    own = replace(ARCHITECTURES["llama2_7b"], **changes)
    with pytest.raises(ValueError, match="must be of its llama3 module, without"):
        llama_sizes(own, 32, in_pipeline=True)


@given(
    name=st.sampled_from(["gpipe", "1f1b", "1f1b_2x", "zb_h1", "zb_h2"]),
    num_stages=st.integers(1, 6),
    num_microbatches=st.integers(1, 12),
)
def test_orders_are_read_as_they_are_written(name, num_stages, num_microbatches):
    orders = stage_orders(name, num_stages, num_microbatches)

    assert read_orders(orders_text(orders)) == orders


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0F0x9,0B0\n", "must be passes .* got '0F0x9'"),
        ("0F0,0SEND_F0,0B0\n", "got '0SEND_F0': .* wrong gradients silently"),
        ("0F0,0F0,0B0\n", "must have each pass once, got 0F0 twice, which torch runs"),
        ("rank 0\n", "got 'rank 0'"),
        ("0F0,0B0\n\n", "row 1 must be passes .* got ''"),
        ("0f0\n", "got '0f0'"),
    ],
)
def test_files_of_orders_that_torch_takes_and_should_not_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        read_orders(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[model]", "[model", "config.toml: not readable as TOML"),
        ("seq_len = 4096\n", "", "config.toml: training.seq_len: must be given"),
        ("seq_len", "sequence", "config.toml: training.sequence: unknown key"),
        ('"none"', '"half"', "config.toml: activation_checkpoint.mode: "),
        ("dim = 4096", "dim = true", "config.toml: model.dim: "),
        ('"layers.31", ', "", "would lose modules without a word"),
    ],
)
def test_configurations_that_cannot_be_read_are_refused(old, new, message):
    text = CONFIG.text()
    assert old in text
    with pytest.raises(ValueError, match=message):
        read_config(text.replace(old, new, 1))

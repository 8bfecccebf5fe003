"""Megatron-LM."""

from agents.trainers.trainer import Trainer

MEGATRON = Trainer(
    name="megatron",
    title="Megatron-LM",
    source="NVIDIA/Megatron-LM d98e8a64: megatron/training/arguments.py, megatron/core/"
    "pipeline_parallel/schedules.py and p2p_communication.py, megatron/core/transformer/"
    "pipeline_parallel_layer_layout.py, megatron/training/initialize.py",
    schedules=("1f1b", "interleaved_1f1b"),
    factored_schedules=("interleaved_1f1b",),
    blocking_schedules=("1f1b",),
    whole_groups=True,
    equal_degrees=True,
    ends_are_layers=True,
    equal_shares=True,
    host_orders=("stage", "replica"),
    synchronisations=("every_step",),
    bits=(16.0,),
    gradient_precisions=("fp32", "bf16"),
    sharding=("none", "optimiser"),
    pipeline_sharding=("none", "optimiser"),
)

"""DeepSpeed, by its `PipelineModule`."""

from agents.trainers.trainer import Trainer

DEEPSPEED = Trainer(
    name="deepspeed",
    title="DeepSpeed",
    source="deepspeedai/DeepSpeed edaa7221: deepspeed/runtime/pipe/module.py, schedule.py, "
    "topology.py and p2p.py, deepspeed/launcher/runner.py",
    schedules=("1f1b",),
    blocking_schedules=("1f1b",),
    equal_degrees=True,
    has_context=False,
    uneven_layers=False,
    ends_are_layers=True,
    equal_shares=True,
    host_orders=("stage",),
    synchronisations=("every_step",),
    bits=(16.0,),
    precisions=("bf16",),
    gradient_precisions=("fp32", "bf16"),
    pipeline_sharding=("none", "optimiser"),
    recomputations=("flash", "none", "full"),
)

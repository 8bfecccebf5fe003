"""torchtitan, with torchft between sites.

A file of orders gives it any schedule; only the plain ones of torch wait for their sends. Sharded
data parallelism keeps parameters whole in a pipeline and gathers them without one. An outer
exchange of torchft is of whole values or FP8, and its mean does not weigh replicas by their tokens.
"""

from agents.trainers.trainer import Trainer

TORCHTITAN = Trainer(
    name="torchtitan",
    title="torchtitan with torchft",
    source="pytorch/torchtitan b5bcd76c: torchtitan/config, torchtitan/distributed; "
    "pytorch/torchft 73dafeea: torchft/manager.py, local_sgd.py, collectives.py; "
    "torch 2.13: torch/distributed/pipelining/schedules.py",
    blocking_schedules=("1f1b",),
    equal_degrees=True,
    ends_are_layers=True,
    equal_shares=True,
    host_orders=("stage",),
    replicas_apart=True,
    synchronisations=("every_step", "diloco", "streaming_diloco"),
    bits=(8.0, 16.0, 32.0),
    exchanges_behind_backward=False,
    precisions=("bf16", "fp8", "mxfp8"),
    gradient_precisions=("fp32",),
    sharding=("none", "gradients", "parameters"),
    pipeline_sharding=("none", "gradients"),
    recomputations=("flash", "full"),
)

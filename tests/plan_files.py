"""Files of plans for tests: complete ones, a command line of Megatron-LM, a plan of Sailor."""

import json
from pathlib import Path

from bound_cases import bound_plan, job, sites

from agents.decision.bound_plan import BoundPlan
from agents.decision.plan_document import write_document
from des import simulate
from des.world.files.topology_writer import write_topology

TRAIN = """\
#!/bin/bash
TP=8
ARGS=(
    --num-layers 32   # of Llama 2 7B
    --seq-length 4096 --micro-batch-size 1 --global-batch-size 32
)
torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py ${ARGS[@]} --lr 1e-4 \\
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size 4 \\
    --sequence-parallel --overlap-grad-reduce
"""
"""Four stages of 8 GPUs, of 8 layers each."""


def write_sites(folder: Path) -> Path:
    """Write the world of `bound_cases.sites`."""
    path = folder / "sites.yaml"
    write_topology(path, sites())
    return path


def write_train(folder: Path, *, text: str = TRAIN, **changes: str) -> Path:
    """Write the command line, with further or other flags, such as ``seq_length="512"``."""
    flags = "".join(f" --{name.replace('_', '-')} '{value}'" for name, value in changes.items())
    path = folder / "train.sh"
    path.write_text(f"{text.rstrip()}{flags}\n", encoding="utf-8")
    return path


def bound_case(**changes: object) -> BoundPlan:
    """A plan of Megatron-LM on the sites, with its simulated time of a step."""
    topology, workload, plan = sites(), job(), bound_plan(**changes)  # type: ignore[arg-type]
    return BoundPlan(
        topology=topology,
        workload=workload,
        plan=plan,
        trainer="megatron",
        step_s=simulate(topology, workload, plan).makespan_s,
    )


def write_plan(folder: Path, **changes: object) -> Path:
    """Write a complete plan, with other top-level values of its document."""
    path = folder / "plan.json"
    path.write_text(json.dumps(write_document(bound_case()) | changes), encoding="utf-8")
    return path


def sailor_content(*stages: list[tuple[str, str, int]], layers: list[int]) -> dict[str, object]:
    """A plan of Sailor: of each stage GPU, zone and tensor parallelism of each replica."""
    numbers = iter(range(sum(layers)))
    return {
        "pipeline_list": [
            {
                "num_stages": len(stages),
                "layers_per_stage": [[next(numbers) for _ in range(own)] for own in layers],
                "tmp_per_stage": [
                    [[[[gpu, tensor, zone]], tensor] for gpu, zone, tensor in stage]
                    for stage in stages
                ],
                "dp": [len(stage) for stage in stages],
            }
        ],
        "mbs": 2,
        "gbs": 64,
        "iter_time": 1.5,
        "estimated_cost": [0.0, 0.0, 0.0],
    }


def write_sailor(folder: Path, content: dict[str, object]) -> Path:
    """Write a plan of Sailor."""
    path = folder / "plan_config.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path

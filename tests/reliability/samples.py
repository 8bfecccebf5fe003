"""Small valid files for the readers that no shipped file is a sample of."""

import dataclasses
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from agents.hi_ppo.local.policy import LocalArchitecture, save_policy
from agents.hi_ppo.local.training_policy import LocalPolicy
from bench.execution_traces import compute, receive, send, write_traces
from calibration.cases.case import Measurement
from calibration.cases.case_key import RunKey
from calibration.fit.corrections_file import corrections_bytes
from calibration.runs.store import Store
from des.plan.corrections import Corrections
from des.serving.fleet_world import PoolView
from scenarios.frame.metrics_log import COUNTERS, LEARNING_COLUMNS, WALL_CLOCK_COLUMNS

_LOG_COLUMNS = (*COUNTERS, *LEARNING_COLUMNS, *WALL_CLOCK_COLUMNS)
METRICS_CSV = "".join(
    f"{line}\n"
    for line in (
        ",".join(_LOG_COLUMNS),
        ",".join(["128", "1", *["0.5"] * (len(_LOG_COLUMNS) - 2)]),
        ",".join(["256", "2", *["0.25"] * (len(_LOG_COLUMNS) - 2)]),
    )
)
PLACEMENT_CSV = """\
update,mean_cost,found_cost,depth_regret,entropy
0,1.5,1.25,0.125,2
1,1.25,1.125,0.0625,1.5
"""
VIEW_JSON = json.dumps(
    {
        "now_s": 60,
        "interval_s": 10,
        "arrivals": 80,
        "prompt_tokens": 96000,
        "finished": 70,
        "output_tokens": 14000,
        "ttft_s": 0.4,
        "ttft_p95_s": 0.9,
        "gap_s": 0.03,
        "attainment": None,
        "pools": {"mixed": {field.name: 1 for field in dataclasses.fields(PoolView)}},
    }
)
TRACE_CSV = """\
time_s,source,target,bandwidth_bytes_per_s,latency_s
0,east,west,1e9,0.01
0,west,east,1e9,0.01
60,east,west,5e8,0.02
60,west,east,5e8,0.02
"""
PROFILE_CSV = """\
# of a test
gpu,layer,hidden_size,num_heads,ffn_size,tensor,microbatch_size,sequence,forward_s,input_gradient_s,weight_gradient_s,exchanges
h100,dense,64,4,256,1,1,128,0.01,0.01,0.01,excluded
h100,dense,64,4,256,1,2,128,0.02,0.02,0.02,excluded
"""
LAYERS_CSV = PROFILE_CSV.removeprefix("# of a test\n")
PROFILE_JSON = json.dumps(
    {
        "source": "a test",
        "gpu": "h100",
        "points": [
            {
                **{"layer": "dense", "hidden_size": 64, "num_heads": 4, "ffn_size": 256},
                **{"tensor": 1, "microbatch_size": 1, "sequence": 128},
                **{"forward_s": 0.01, "input_gradient_s": 0.01, "weight_gradient_s": 0.01},
            }
        ],
    }
)
SERVERS_YAML = """\
servers:
  - {name: n0, simulate: dgx-h100, levels: {zone: z, rack: rack-1}, free: [0, 1, 2, 3]}
  - {name: n1, simulate: dgx-h100, levels: {zone: z, rack: rack-2}}
"""
COLLECTIVES_CSV = """\
node,workers,gpus_per_node,bytes,median_ms
h100_dgx,8,8,1048576,0.1
h100_dgx,8,8,16777216,0.5
"""
SYSTEM_JSON = json.dumps(
    {
        **{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1},
        **{"preferred-dataset-splits": 4, "collective-optimization": "localBWAware"},
        **{f"{name}-implementation": ["ring", "direct"] for name in ("all-reduce", "all-gather")},
        **{
            f"{name}-implementation": ["ring", "direct"]
            for name in ("reduce-scatter", "all-to-all")
        },
        **{"local-mem-bw": 50, "peak-perf": 100},
    }
)
ITERATIONS_JSON = json.dumps(
    {
        "source": "a test",
        "setup": {
            **{"gpu": "a100_80", "gpus_per_node": 8, "intra_bandwidth_bytes_per_s": 300e9},
            **{"nics_per_node": 8, "nic_bandwidth_bytes_per_s": 12.5e9, "recomputation": "full"},
            **{"vocabulary_size": 1000, "target_error": 0.1},
        },
        "rows": [
            {
                **{"num_gpus": 4, "global_batch": 8, "microbatch_size": 1, "hidden_size": 64},
                **{"num_heads": 4, "num_layers": 4, "sequence_length": 32, "tensor": 2},
                **{"data": 1, "pipeline": 2, "measured_iteration_s": 1.0},
            }
        ],
    }
)


def corrections_json() -> bytes:
    """Factors for any model and network."""
    return corrections_bytes(Corrections(), None)


def store_file() -> bytes:
    """A store of three runs."""

    def write(path: Path) -> None:
        store = Store.open(path)
        for number in range(3):
            key = RunKey(
                case_digest=f"{number:064x}", backend="aware", aggregation=None, version="1"
            )
            measurement = Measurement(
                makespan_s=1.0 + number, communication_bytes=1e9, exposed_s=(0.5, 0.25)
            )
            store.put(key, measurement, {"note": number}, created_s=float(number))

    return _written(write, "runs.sqlite")


def local_policy() -> bytes:
    """A policy without training."""

    def write(path: Path) -> None:
        policy = LocalPolicy(LocalArchitecture(hidden_size=8), torch.Generator().manual_seed(0))
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.zero_()
        save_policy(path, policy, {})

    return _written(write, "local.safetensors")


def trace_file() -> bytes:
    """A rank that computes, sends and receives."""

    def write(path: Path) -> None:
        nodes = [
            compute(0, 10),
            send(1, 1, 1000, 0, [0]),
            receive(2, 1, 1000, 0, [1]),
        ]
        write_traces(path.parent, [nodes])
        next(path.parent.glob("*.et")).rename(path)

    return _written(write, "rank.trace")


def _written(write: Callable[[Path], None], name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


def episodes_file() -> bytes:
    """Episodes of two draws of two epochs and two plans."""
    target = io.BytesIO()
    np.savez_compressed(
        target,
        made_of=np.array("a stage"),
        plans=np.array([("0*2,1*2", "1f1b"), ("1*4", "gpipe")]),
        iteration_s=np.ones((2, 2, 2)),
        move_s=np.ones((2, 2, 2, 2), dtype=np.float32),
        moved_bytes=np.ones((2, 2)),
        cost_bytes=np.ones(2),
        base_iteration_s=np.ones(2),
        epoch_s=np.asarray(1200.0),
        iterations_per_epoch=np.asarray(3),
        flops_per_iteration=np.asarray(1e15),
        tokens_per_iteration=np.asarray(4096),
        peak_flops_per_s=np.asarray(1e15),
    )
    return target.getvalue()

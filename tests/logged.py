"""Logs of Megatron-LM of given steps, and the two sites that their runs are on."""

from pathlib import Path

from calibration.measured.logged_runs import logged_run
from calibration.measurements.formats import read_file
from calibration.measurements.source_text import SourceText

CLUSTER = """topology:
  domains:
  - {name: A, num_gpus: 8, gpu: h100, intra_bandwidth: 3600Gbps, intra_latency: 20us}
  - {name: B, num_gpus: 8, gpu: h100, intra_bandwidth: 3600Gbps, intra_latency: 20us}
  cross_domain_links:
  - {source: A, dest: B, bandwidth: 10Gbps, latency: 10ms}
"""
SIZES = {
    "num_layers": 4,
    "hidden_size": 1024,
    "num_attention_heads": 16,
    "seq_length": 1024,
    "micro_batch_size": 1,
    "tensor_model_parallel_size": 1,
    "pipeline_model_parallel_size": 2,
    "world_size": 4,
    "transformer_impl": "transformer_engine",
}


def log_text(step_s, **sizes):
    """A log of Megatron-LM with ten equal steps."""
    arguments = SIZES | {"global_batch_size": 16} | sizes
    lines = [f"  {name} {'.' * (48 - len(name))} {value}" for name, value in arguments.items()]
    lines.append(" > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)")
    lines += [
        f" iteration {at:8d}/     100 | elapsed time per iteration (ms): {1e3 * step_s:.9f} |"
        for at in range(1, 11)
    ]
    return "\n".join(lines) + "\n"


def run_of(step_s, name="run.log", **sizes):
    """The run of such a log."""
    return logged_run(read_file(SourceText(path=Path(name), text=log_text(step_s, **sizes)))[0])


def network_of(folder):
    """File of two sites of eight GPUs."""
    path = folder / "network.yaml"
    path.write_text(CLUSTER, encoding="utf-8")
    return path

"""Small input files, by name, in place of the reader's own that commands of the pages read."""

import dataclasses
import json
import re
from pathlib import Path

from des.serving.fleet_world import PoolView

_ROOT = Path(__file__).resolve().parents[1]
_TOPO = (_ROOT / "tests/golden/topo/01-h100-nv18-8gpu-8nic.txt").read_text("utf-8")
_APPLICATIONS = (_ROOT / "docs/cluster.md").read_text("utf-8")
_WORLD = (_ROOT / "examples/my_world.yaml").read_text("utf-8")
_POOL = {field.name: 0 for field in dataclasses.fields(PoolView)} | {"active": 2, "running": 6}
_VIEW = {
    **{"now_s": 600.0, "interval_s": 10.0, "ttft_s": 0.6, "ttft_p95_s": 2.0, "gap_s": 0.03},
    **{"arrivals": 300, "prompt_tokens": 300_000, "finished": 280, "output_tokens": 56_000},
    **{"attainment": 0.7, "pools": {"prompt": _POOL, "token": _POOL}},
}

STAND_INS: dict[str, str] = {
    "topo.txt": _TOPO,
    "numactl.txt": """\
available: 2 nodes (0-1)
node 0 cpus: 0-47 96-143
node 0 size: 1031000 MB
node 0 free: 990000 MB
node 1 cpus: 48-95 144-191
node 1 size: 1032000 MB
node 1 free: 990000 MB
node distances:
node   0   1
  0:  10  21
  1:  21  10
""",
    "nvlink.txt": "".join(
        f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-{gpu})\n"
        + "".join(f"     Link {link}: 26.562 GB/s\n" for link in range(18))
        for gpu in range(8)
    ),
    "now.yaml": _WORLD,
    "job.json": json.dumps(
        {"model": "llama2_70b", "microbatches": 32, "microbatch_size": 1, "sequence_length": 4096}
    ),
    "config.json": json.dumps(
        {
            "model_type": "llama",
            "hidden_size": 4096,
            "intermediate_size": 11008,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "vocab_size": 32000,
        }
    ),
    "cluster_log.csv": "0,res18,10,500,1\n1,lstm,4,60,2\n2,lstm,4,600,4\n",
    "applications.yaml": re.findall(r"(?s)```yaml\n(applications:.*?)```", _APPLICATIONS)[0],
    "view.json": json.dumps(_VIEW),
    "chat.yaml": (
        "mixed: {num_instances: 2, instance: h100-llama-3.3-70b-fp8-tp4, parallelism: 4}\n"
    ),
}

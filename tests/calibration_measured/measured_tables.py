"""Tables of measured runs for tests, written as files."""

import json
from pathlib import Path

SETUP = {
    "gpu": "a100_80",
    "gpus_per_node": 8,
    "intra_bandwidth_bytes_per_s": 300e9,
    "nics_per_node": 8,
    "nic_bandwidth_bytes_per_s": 12.5e9,
    "recomputation": "full",
    "vocabulary_size": 1000,
    "target_error": 0.1,
}
ROW = {
    "num_gpus": 4,
    "global_batch": 8,
    "microbatch_size": 1,
    "hidden_size": 64,
    "num_heads": 4,
    "num_layers": 4,
    "sequence_length": 32,
    "tensor": 2,
    "data": 1,
    "pipeline": 2,
    "measured_iteration_s": 1.0,
}


def table_file(folder: Path, *rows: dict, name: str = "vtrain_single.json", **keys: object) -> Path:
    """A file of rows, each with changes of `ROW`; ``setup=None`` leaves the setup out."""
    content = {"source": "a test", "setup": SETUP} | keys
    content["rows"] = [ROW | row for row in rows or ({},)]
    path = folder / name
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    return path

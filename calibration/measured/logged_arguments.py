"""Sizes of runs by the arguments that trainers print in their logs."""

import math
from collections.abc import Mapping
from types import MappingProxyType

from calibration.measured.run_sizes import MeasuredRun
from calibration.measurements.reading import Reading
from calibration.measurements.torchtitan_log import NAME as TORCHTITAN
from des.base.strict_forms import form_errors

_MEGATRON: Mapping[str, str] = MappingProxyType(
    {
        "num_gpus": "world_size",
        "global_batch": "global_batch_size",
        "microbatch_size": "micro_batch_size",
        "hidden_size": "hidden_size",
        "num_heads": "num_attention_heads",
        "num_layers": "num_layers",
        "sequence_length": "seq_length",
        "tensor": "tensor_model_parallel_size",
        "pipeline": "pipeline_model_parallel_size",
        "ffn_size": "ffn_hidden_size",
        "interleaving": "virtual_pipeline_model_parallel_size",
        "expert": "expert_model_parallel_size",
        "num_experts": "num_experts",
        "experts_per_token": "moe_router_topk",
        "expert_ffn_size": "moe_ffn_hidden_size",
    }
)
"""Arguments of Megatron-LM by sizes of a run; those that it prints as None are left out."""

_TORCHTITAN: Mapping[str, str] = MappingProxyType(
    {
        "global_batch": "global_batch_size",
        "microbatch_size": "micro_batch_size",
        "sequence_length": "seq_length",
        "hidden_size": "dim",
        "num_heads": "n_heads",
        "num_layers": "n_layers",
        "num_key_value_heads": "n_kv_heads",
        "tensor": "tp",
        "pipeline": "pp",
    }
)
_EXPERTS = ("num_experts", "experts_per_token", "expert_ffn_size")


def run_of_arguments(reading: Reading) -> MeasuredRun:
    """Make the run of a log of its arguments; a `ValueError` names one that is missing or wrong."""
    facts, is_titan = dict(reading.facts), reading.format == TORCHTITAN
    names = _TORCHTITAN if is_titan else _MEGATRON
    sizes: dict[str, object] = {
        size: whole_argument(reading, name, facts[name])
        for size, name in names.items()
        if name in facts
    }
    sizes |= _of_torchtitan(reading, facts) if is_titan else _of_megatron(reading, facts)
    for name in ("context_parallel_size", "cp"):
        if facts.get(name, "1") != "1":
            raise ValueError(f"{reading.file}: {name} must be 1, got {facts[name]}")
    with form_errors(f"{reading.file}: arguments"):
        run = MeasuredRun.model_validate(sizes | {"measured_iteration_s": reading.value})
        run.check()
    return run


def _of_megatron(reading: Reading, facts: Mapping[str, str]) -> dict[str, object]:
    """Sizes that several arguments say together."""
    found: dict[str, object] = {
        "gated_ffn": facts.get("swiglu") == "True",
        "tied_embeddings": facts.get("untie_embeddings_and_output_weights") != "True",
    }
    if facts.get("group_query_attention") == "True" and "num_query_groups" in facts:
        found["num_key_value_heads"] = whole_argument(reading, "groups", facts["num_query_groups"])
    if "num_experts" not in facts:
        found |= dict.fromkeys(_EXPERTS)
    elif "moe_ffn_hidden_size" not in facts and "ffn_hidden_size" in facts:
        found["expert_ffn_size"] = whole_argument(reading, "ffn", facts["ffn_hidden_size"])
    gpus, tensor, pipeline = (
        whole_argument(reading, _MEGATRON[name], facts.get(_MEGATRON[name], "1"))
        for name in ("num_gpus", "tensor", "pipeline")
    )
    return found | {"data": max(1, gpus // (tensor * pipeline))}


def _of_torchtitan(reading: Reading, facts: Mapping[str, str]) -> dict[str, object]:
    """Llama's feed-forward, and GPUs by the mesh."""
    named = ("dp_shard", "dp_replicate")
    data = math.prod(whole_argument(reading, name, facts.get(name, "1")) for name in named)
    tensor, pipeline = (
        whole_argument(reading, name, facts.get(name, "1")) for name in ("tp", "pp")
    )
    found: dict[str, object] = {
        "data": data,
        "tensor": tensor,
        "pipeline": pipeline,
        "num_gpus": data * tensor * pipeline,
        "gated_ffn": True,
        "tied_embeddings": False,
    }
    if "dim" in facts and "multiple_of" in facts:
        width = int(8 * whole_argument(reading, "dim", facts["dim"]) / 3)
        width = int(float(facts.get("ffn_dim_multiplier", "1")) * width)
        multiple = whole_argument(reading, "multiple_of", facts["multiple_of"])
        found["ffn_size"] = -(-width // multiple) * multiple
    return found


def whole_argument(reading: Reading, name: str, text: str) -> int:
    """Read a whole number; a `ValueError` names file and argument."""
    try:
        return int(text)
    except ValueError as error:
        raise ValueError(f"{reading.file}: {name} must be a whole number, got {text!r}") from error

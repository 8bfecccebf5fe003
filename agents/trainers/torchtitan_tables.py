"""Configuration of torchtitan: tables of plain values, their TOML text, and back."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.trainers.torchtitan_config import (
    TorchftExchange,
    TorchtitanConfig,
    layers_of_modules,
    module_names,
)
from des.job.architecture import Architecture
from des.job.transformer import Recomputation

_RECOMPUTATIONS: dict[Recomputation, str] = {"flash": "none", "full": "full"}
_SHARED: dict[float, tuple[bool, str]] = {
    8.0: (True, "float32"),
    16.0: (False, "bfloat16"),
    32.0: (False, "float32"),
}
"""Quantised or not, and type of parameters, by the bits of a value that is exchanged."""

_SCHEDULES = {False: "1F1B", True: "ZBVZeroBubble"}
"""Name that has stages laid over ranks round and round, or there and back; a file has the order."""

Tables = dict[str, dict[str, Any]]


def model_table(own: Architecture, num_layers: int, *, in_pipeline: bool) -> dict[str, Any]:
    """Return the sizes of a model as torchtitan's llama3 module has them.

    Raises
    ------
    ValueError
        If the model is another one.
    """
    heads = own.hidden_size // own.num_heads
    for field, is_other in (
        ("experts", own.experts is not None),
        ("latent_attention", own.latent_attention is not None),
        ("a feed-forward that is not gated", not own.gated_ffn),
        ("biases", any(own.adds_bias(part) for part in ("qkv", "output", "ffn"))),
        ("norms of queries and keys", own.qk_norm or own.whole_qk_norm),
        ("num_norms other than 2", own.num_norms != 2),
        ("attention_sinks", own.attention_sinks),
        ("attention_window", own.attention_window is not None),
        ("learned positions", own.num_positions > 0),
        ("a head_size of its own", own.head_size not in (None, heads)),
        ("tied embeddings in a pipeline", own.tied_embeddings and in_pipeline),
    ):
        if is_other:
            raise ValueError(
                f"torchtitan: models must be of its llama3 module, without {field}; {own.name} "
                "has it"
            )
    return {
        "dim": own.hidden_size,
        "n_layers": num_layers,
        "n_heads": own.num_heads,
        "n_kv_heads": own.num_key_value_heads,
        "hidden_dim": own.ffn_size,
        "vocab_size": own.vocabulary_size,
        "enable_weight_tying": own.tied_embeddings,
    }


def config_tables(config: TorchtitanConfig, *, orders: str) -> Tables:
    """Return the tables of a run but that of its model; ``orders`` names the file of orders."""
    is_pipeline = config.pipeline > 1
    outer = config.outer
    tables: Tables = {
        "training": {
            "seq_len": config.sequence_length,
            "local_batch_size": config.microbatch_size
            * (config.num_microbatches if is_pipeline else 1),
            "global_batch_size": config.global_batch_size,
            "dtype": "float32" if outer is None else _SHARED[outer.bits][1],
            "mixed_precision_reduce": "float32",
        },
        "parallelism": {
            "tensor_parallel_degree": config.tensor,
            "enable_sequence_parallel": config.sequence_parallel,
            "context_parallel_degree": config.context,
            "data_parallel_replicate_degree": config.replicate,
            "data_parallel_shard_degree": config.shard,
            "fsdp_reshard_after_forward": "always" if config.reshards else "never",
            "pipeline_parallel_degree": config.pipeline,
        },
        "activation_checkpoint": {"mode": _RECOMPUTATIONS[config.recomputation]},
        "quantization": {"linear": config.precision},
    }
    if is_pipeline:
        tables["parallelism"] |= {
            "pipeline_parallel_schedule": _SCHEDULES[config.is_wave],
            "pipeline_parallel_schedule_csv": orders if config.has_orders else "",
            "pipeline_parallel_microbatch_size": config.microbatch_size,
            "module_fqns_per_model_part": module_names(config.stage_layers),
        }
    if outer is not None:
        tables["fault_tolerance"] = _outer_table(outer)
    return tables


def _outer_table(outer: TorchftExchange) -> dict[str, Any]:
    names = [[f"layers.{layer}" for layer in own] for own in outer.fragments]
    names[0].insert(0, "tok_embeddings")
    names[-1] += ["norm", "lm_head"]
    return {
        "enable": True,
        "semi_sync_method": "diloco",
        "process_group": "nccl",
        "replica_id": outer.replica,
        "group_size": outer.num_replicas,
        "min_replica_size": outer.num_replicas,
        "sync_steps": outer.steps_between,
        "num_fragments": len(outer.fragments),
        "fragment_sync_delay": outer.delay_steps,
        "should_quantize": _SHARED[outer.bits][0],
        "module_fqns_per_model_fragment": names if len(names) > 1 else [],
    }


def config_of_tables(tables: Mapping[str, Mapping[str, Any]], num_layers: int) -> TorchtitanConfig:
    """Make the run that tables of `config_tables` say.

    Raises
    ------
    ValueError
        If a key is missing, or a value is none that is written.
    """
    try:
        training, degrees = tables["training"], tables["parallelism"]
        pipeline = degrees["pipeline_parallel_degree"]
        parts = degrees.get("module_fqns_per_model_part", module_names((num_layers,)))
        size = training["local_batch_size"]
        if pipeline > 1:
            size = degrees["pipeline_parallel_microbatch_size"]
        outer = tables.get("fault_tolerance")
        ranks = degrees["data_parallel_replicate_degree"] * degrees["data_parallel_shard_degree"]
        ranks *= 1 if outer is None else outer["group_size"]
        return TorchtitanConfig(
            tensor=degrees["tensor_parallel_degree"],
            pipeline=pipeline,
            context=degrees["context_parallel_degree"],
            replicate=degrees["data_parallel_replicate_degree"],
            shard=degrees["data_parallel_shard_degree"],
            reshards=degrees["fsdp_reshard_after_forward"] == "always",
            sequence_parallel=degrees["enable_sequence_parallel"],
            stage_layers=layers_of_modules(parts, num_layers),
            is_wave=degrees.get("pipeline_parallel_schedule", "1F1B") == _SCHEDULES[True],
            has_orders=bool(degrees.get("pipeline_parallel_schedule_csv", "")),
            num_microbatches=training["global_batch_size"] // (size * ranks),
            microbatch_size=size,
            global_batch_size=training["global_batch_size"],
            sequence_length=training["seq_len"],
            precision=tables["quantization"]["linear"],
            recomputation=_recomputation_of(tables["activation_checkpoint"]["mode"]),
            outer=None if outer is None else _outer_of(outer, training["dtype"], num_layers),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"config.toml: must be as it was written, got none of {error}") from error


def _recomputation_of(mode: str) -> Recomputation:
    for recomputation, own in _RECOMPUTATIONS.items():
        if own == mode:
            return recomputation
    raise ValueError(f"activation_checkpoint: mode must be none or full, got {mode!r}")


def _outer_of(table: Mapping[str, Any], dtype: str, num_layers: int) -> TorchftExchange:
    bits = [one for one, own in _SHARED.items() if own == (table["should_quantize"], dtype)]
    if not bits:
        raise ValueError(
            f"fault_tolerance: should_quantize must be with parameters in float32, got {dtype}"
        )
    names = table["module_fqns_per_model_fragment"]
    fragments = tuple(tuple(_layers_named(own)) for own in names) or (tuple(range(num_layers)),)
    return TorchftExchange(
        replica=table["replica_id"],
        num_replicas=table["group_size"],
        steps_between=table["sync_steps"],
        delay_steps=table["fragment_sync_delay"],
        bits=bits[0],
        fragments=fragments,
    )


def _layers_named(names: Sequence[str]) -> Iterator[int]:
    for name in names:
        if (found := re.fullmatch(r"layers\.([0-9]+)", name)) is not None:
            yield int(found[1])


def toml_text(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Write tables of plain values as TOML, which has the same texts, numbers and lists as JSON.

    Examples
    --------
    >>> print(toml_text({"model": {"dim": 8, "name": "llama3"}}))
    [model]
    dim = 8
    name = "llama3"
    <BLANKLINE>
    """
    return "\n".join(
        "".join((f"[{name}]\n", *(f"{key} = {json.dumps(one)}\n" for key, one in own.items())))
        for name, own in tables.items()
    )


def read_toml(text: str) -> Tables:
    """Read tables of TOML.

    Raises
    ------
    ValueError
        If it is not TOML, or has values outside tables.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"config.toml: not readable as TOML: {error}") from error
    for name, own in tables.items():
        if not isinstance(own, dict):
            raise ValueError(f"config.toml: {name} must be a table, got {own!r}")
    return tables

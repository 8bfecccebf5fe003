"""Kinds that the table lacks, read by transformers itself where the extra ``hf`` is installed.

The library fills in what the file leaves out and says how many parameters the model has; the row
of the table whose architecture has as many is the one that the model is like.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from des.base.lazy import LazyModule
from des.job.architecture import Architecture
from des.job.model_kinds import KINDS, ModelKind
from des.job.transformer import model_parameters

transformers: Any = LazyModule("transformers")


def architecture_by_library(
    content: Mapping[str, Any],
    architecture_of: Callable[[ModelKind, Mapping[str, Any]], Architecture],
) -> Architecture:
    """Make the architecture of the first row, its feed-forward gated or not, with equal parameters.

    Raises
    ------
    ValueError
        If the library does not know the kind or has no decoder of it, or no row has its number.
    """
    try:
        config = transformers.AutoConfig.for_model(**content).get_text_config()
        num_parameters = count_parameters(config)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"transformers cannot read it: {reason}") from error
    keys = config.to_dict()
    keys |= {own: keys[other] for own, other in config.attribute_map.items() if other in keys}
    others = (replace(kind, gated_ffn=not kind.gated_ffn) for kind in KINDS.values())
    for kind in (*KINDS.values(), *others):
        try:
            found = architecture_of(kind, keys)
        except ValueError:  # pydantic's is one
            continue  # another kind's keys
        if model_parameters(found) == num_parameters:
            return found
    raise ValueError(
        f"transformers {transformers.__version__} counts {num_parameters:,} parameters, which none "
        "of these kinds would have"
    )


def count_parameters(config: Any) -> int:
    """Parameters of a decoder, with the correction biases of routers, which need no memory here."""
    with transformers.modeling_utils.torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    biases = [one for name, one in model.named_buffers() if name.endswith("correction_bias")]
    return sum(one.numel() for one in (*model.parameters(), *biases))

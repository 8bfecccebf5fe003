"""Measured profiles of inference engines: time of a prompt alone, and gaps by batch and context."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from des.base.strict_forms import read_json_form

SHIPPED = Path(__file__).parent / "data" / "serving_profiles.json"
Positive = Annotated[float, Field(gt=0)]


class EngineProfile(BaseModel):
    """Cells of one engine: columns of equal length for prompts, and for decoding."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    gpu: str
    model: str
    tensor_parallel: Annotated[int, Field(gt=0)]
    max_kv_tokens: Annotated[int, Field(gt=0)]
    prompt_tokens: tuple[Positive, ...]
    prefill_ms: tuple[Positive, ...]
    kv_share: tuple[Positive, ...]
    context_tokens: tuple[Positive, ...]
    gap_ms: tuple[Positive, ...]

    @model_validator(mode="after")
    def _columns_agree(self) -> "EngineProfile":
        if len(self.prompt_tokens) != len(self.prefill_ms) or len(self.prompt_tokens) < 6:
            raise ValueError("prompt_tokens and prefill_ms must have equal lengths, at least 6")
        if not len(self.kv_share) == len(self.context_tokens) == len(self.gap_ms) >= 12:
            raise ValueError(
                "kv_share, context_tokens and gap_ms must have equal lengths, at least 12"
            )
        return self

    @property
    def batches(self) -> tuple[int, ...]:
        """Requests that decode together in each cell: KV tokens in use over the context."""
        return tuple(
            round(share * self.max_kv_tokens / context)
            for share, context in zip(self.kv_share, self.context_tokens, strict=True)
        )


class _ProfileFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    source: str
    profiles: dict[str, EngineProfile]


def read_profiles(path: Path) -> Mapping[str, EngineProfile]:
    """Read a file of profiles.

    Raises
    ------
    ValueError
        If a field is missing or wrong, naming file, field, what is allowed and what came.
    """
    return read_json_form(path, _ProfileFile).profiles

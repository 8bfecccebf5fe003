"""Training jobs from JSON files."""

import os
from pathlib import Path

from agents.decision.training_job import TrainingJob
from des.base.checks import prefixed_errors
from des.base.quantities import parse_tokens
from des.base.strict_forms import StrictForm, form_errors
from des.base.text_files import read_json
from des.job.model_presets import ALIASES, ARCHITECTURES
from des.job.precision import precision_named


class _JobForm(StrictForm):
    """Keys of a job file; ``note`` is for readers."""

    model: str
    num_layers: int | None = None
    microbatches: int
    microbatch_size: int
    sequence_length: int
    precision: str = "bf16"
    tokens_per_step: int | str | None = None
    note: str = ""


def read_job(path: Path) -> tuple[TrainingJob, int]:
    """Read a training job, and the sequences of a microbatch that its file names.

    A model that is no preset is looked for next to the file, then as it is. ``tokens_per_step``
    may have a suffix, see `des.base.quantities.parse_tokens`; it must be what the sequences have.

    Raises
    ------
    ValueError
        If the file cannot be read, or a key or a value is wrong; the message names the file, the
        field, what is allowed and what came.
    """
    content = read_json(path)
    with form_errors(str(path)):
        form = _JobForm.model_validate(content)
        return _job_of(form, path), form.microbatch_size


def _job_of(form: _JobForm, path: Path) -> TrainingJob:
    for field in ("microbatches", "microbatch_size"):
        if getattr(form, field) < 1:
            raise ValueError(f"{field}: must be at least 1, got {getattr(form, field)}")
    job = TrainingJob(
        model=_model(form.model, path),
        num_sequences=form.microbatches * form.microbatch_size,
        sequence_length=form.sequence_length,
        num_layers=form.num_layers,
        precision=precision_named("job", form.precision),
    )
    said = form.tokens_per_step
    if said is None:
        return job
    with prefixed_errors("tokens_per_step: "):
        tokens = parse_tokens(str(said))
    if tokens != job.tokens_per_step:
        raise ValueError(
            "tokens_per_step: must be microbatches x microbatch_size x sequence_length = "
            f"{job.tokens_per_step}, got {said!r}"
        )
    return job


def _model(name: str, path: Path) -> str:
    neighbour = path.parent / name
    is_preset = ALIASES.get(name, name) in ARCHITECTURES
    is_there = bool(name) and os.path.exists(neighbour)  # a name may be none of a file
    return str(neighbour) if is_there and not is_preset else name

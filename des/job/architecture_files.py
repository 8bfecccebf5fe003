"""Architectures from files: a ``config.json`` of Hugging Face, or YAML with our own fields."""

import os
from pathlib import Path

from des.base.strict_forms import form_errors, form_of
from des.base.text_files import read_json, read_yaml
from des.job.architecture import Architecture, LatentAttention, MixtureOfExperts
from des.job.hugging_face import from_config

PARTS = {"latent_attention": LatentAttention, "experts": MixtureOfExperts}
"""Fields of an architecture with fields of their own."""

_FORM = form_of(Architecture, parts=tuple(PARTS.items()), leaves_out=("name",))
"""Form of an architecture; its name is that of the file."""


def read_architecture(name: str) -> Architecture:
    """Read a folder's ``config.json``, a ``.json`` file like it, or a ``.yaml`` or ``.yml`` file.

    The name of the architecture is the path as it was given, so it can be read by its name again.

    Raises
    ------
    ValueError
        If the file cannot be read or does not describe a model; the message names the file, the
        key, what is allowed and what came.
    """
    path = Path(name) / "config.json" if os.path.isdir(name) else Path(name)
    kind = path.suffix.lower()
    if kind not in (".json", ".yaml", ".yml"):
        raise ValueError(
            f"{path}: a model must be a folder with a config.json, or a file that ends in .json, "
            ".yaml or .yml"
        )
    content = read_json(path) if kind == ".json" else read_yaml(path)
    with form_errors(str(path)):
        return (from_config if kind == ".json" else from_own_fields)(content, name)


def from_own_fields(content: object, name: str) -> Architecture:
    """Make an architecture of a mapping whose keys are the fields of `Architecture`.

    Examples
    --------
    >>> small = {"num_layers": 2, "hidden_size": 64, "num_heads": 4, "num_key_value_heads": 2,
    ...          "ffn_size": 256, "vocabulary_size": 1000, "gated_ffn": True,
    ...          "tied_embeddings": True, "experts": {"num_experts": 8, "experts_per_token": 2,
    ...                                               "expert_ffn_size": 128, "dense_layers": [0]}}
    >>> from_own_fields(small, "small").is_sparse(1)
    True
    """
    values = dict(_FORM.model_validate(content))
    for key, part in PARTS.items():
        if values[key] is not None:
            values[key] = part(**dict(values[key]))
    return Architecture(name=name, **values)

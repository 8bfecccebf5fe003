"""Files with the weights of a score."""

from dataclasses import fields
from pathlib import Path

from agents.devices.k8s.score_weights import ScoreWeights
from des.base.checks import nearest, prefixed_errors
from des.base.text_files import read_yaml

PROFILE = "profile"
"""Name of the shipped weights."""

_PROFILE_FILE = Path(__file__).parent / "data" / "profile_weights.yaml"


def read_weights(name: str | None) -> ScoreWeights:
    """Read the weights of a score from a file, or those shipped as `PROFILE`; None: the default.

    Raises
    ------
    ValueError
        If the file is wrong, naming the key.
    """
    if name is None:
        return ScoreWeights()
    path = _PROFILE_FILE if name == PROFILE else Path(name)
    content = read_yaml(path)
    known = [field.name for field in fields(ScoreWeights)]
    if not isinstance(content, dict):
        raise ValueError(f"{path}: must be a mapping of {', '.join(known)}")
    for key, value in content.items():
        if key not in known:
            raise ValueError(f"{path}: {key}: unknown key; {nearest(str(key), known)}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{path}: {key} must be a number, got {value!r}")
    with prefixed_errors(f"{path}: "):
        return ScoreWeights(**{str(key): float(value) for key, value in content.items()})

"""Correction factors as the plain content of a state, and back."""

import reprlib
from collections.abc import Mapping

from des import Corrections
from des.plan.corrections import FACTORS


def to_plain(corrections: Corrections) -> dict[str, float]:
    """All fields by name, as floats of Python whatever numbers they were given as.

    Examples
    --------
    >>> to_plain(Corrections(wan_bandwidth_factor=2))["wan_bandwidth_factor"]
    2.0
    """
    corrections.require_no_law("environment")
    return {name: float(getattr(corrections, name)) for name in FACTORS}


def from_plain(content: object, owner: str) -> Corrections:
    """Undo `to_plain`: every field must be there, and no other.

    Parameters
    ----------
    content
        Content of a state.
    owner
        Whose state it is, to be named in errors.

    Raises
    ------
    ValueError
        If a field is missing, unknown, no float or out of its range.
    """
    names = FACTORS
    if not isinstance(content, Mapping):
        raise ValueError(
            f"{owner}: corrections must be a dict of {', '.join(names)}; "
            f"got {reprlib.repr(content)}"
        )
    for name in content:
        if name not in names:
            raise ValueError(
                f"{owner}: corrections must have no fields but {', '.join(names)}; "
                f"got {reprlib.repr(name)}"
            )
    for name in names:
        if name not in content:
            raise ValueError(f"{owner}: corrections must have {name}, got {', '.join(content)}")
        if not isinstance(content[name], float):
            raise ValueError(
                f"{owner}: {name} of corrections must be a float, got {reprlib.repr(content[name])}"
            )
    return Corrections(**content)

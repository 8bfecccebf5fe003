"""Data frames as arrays with named axes, by the extra ``xarray``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from des.base.extras import needed_extra

if TYPE_CHECKING:
    import pandas as pd


def frame_to_xarray(frame: pd.DataFrame, axes: Sequence[str]) -> Any:
    """Return a data frame as an `xarray.Dataset`, each of its other columns over the axes.

    Raises
    ------
    ValueError
        If the extra ``xarray`` is not installed.
    """
    try:
        return frame.set_index(list(axes)).to_xarray()
    except ImportError as error:
        raise ValueError(f"to_xarray {needed_extra('xarray')}") from error

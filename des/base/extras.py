"""Extras of the package, and the line that names one that is missing."""

from collections.abc import Mapping
from importlib.util import find_spec

EXTRA_OF: Mapping[str, str] = {
    "chakra": "train",
    "cppyy": "ns3",
    "dash": "explore",
    "grpc": "cluster",
    "gymnasium": "train",
    "kubernetes": "k8s",
    "kubernetes_validate": "k8s",
    "mlflow": "mlflow",
    "networkx": "networkx",
    "ns3": "ns3",
    "ortools": "exact",
    "plotly": "explore",
    "pyarrow": "parquet",
    "pymoo": "exact",
    "ray": "ray",
    "redis": "cluster-redis",
    "stable_baselines3": "sb3",
    "tensorboard": "train",
    "torch": "train",
    "transformers": "hf",
    "xarray": "xarray",
}
"""Extra that brings each of the modules that the base installation does without."""


def needed_extra(extra: str) -> str:
    """Say how to install an extra.

    Examples
    --------
    >>> needed_extra("train")
    "needs the extra [train]: pip install 'eastwest[train]'"
    """
    return f"needs the extra [{extra}]: pip install 'eastwest[{extra}]'"


def require_extra(owner: str, module: str) -> None:
    """Refuse what needs a module that is not installed.

    Raises
    ------
    ValueError
        Names the owner and the extra that brings the module.
    """
    if find_spec(module) is None:
        raise ValueError(f"{owner} {needed_extra(EXTRA_OF[module])}")

"""Doctests: of the modules that have some, without those that need an extra that is missing."""

from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

NEEDS = {
    "flask": ("scenarios/explore/app.py", "scenarios/explore/calls.py"),
    "werkzeug": ("scenarios/explore/command.py",),
    "dash": (
        "scenarios/explore/app.py",
        "scenarios/explore/calls.py",
        "scenarios/explore/layout.py",
    ),
    "grpc": ("scenarios/cluster/rpc.py",),
    "kubernetes": ("scenarios/k8s/api_server.py", "scenarios/k8s/kubeconfig.py"),
    "kubernetes_validate": ("scenarios/k8s/schema_check.py",),
    "ray": (
        "agents/ppo/ray_actor_pool.py",
        "agents/ppo/ray_rollouts.py",
        "scenarios/frame/ray_session.py",
        "scenarios/train/sweep_ray.py",
    ),
    "mlflow": ("scenarios/train/mlflow_runs.py",),
    "networkx": ("des/devices/cluster.py", "des/engine/result.py", "des/world/topology.py"),
    "redis": ("scenarios/cluster/redis_store.py",),
    "stable_baselines3": (
        "agents/flat/sb3_vec_env.py",
        "agents/scheduling/sb3_vec_env.py",
        "scenarios/train/sb3_policy.py",
    ),
    "urllib3": ("scenarios/k8s/api_server.py",),
}

collect_ignore = [path for extra, paths in NEEDS.items() if not find_spec(extra) for path in paths]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests only in modules with a prompt: nine of ten have none, and take long."""
    found = yield
    has_prompt = file_path.suffix == ".py" and b">>> " in file_path.read_bytes()
    return [one for one in found if has_prompt or not isinstance(one, DoctestModule)]

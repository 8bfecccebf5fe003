"""Modules that need an extra are left out where it is missing."""

from importlib.util import find_spec

NEEDS = {
    "flask": ("scenarios/explore/app.py", "scenarios/explore/calls.py"),
    "werkzeug": ("scenarios/explore/command.py",),
    "dash": (
        "scenarios/explore/app.py",
        "scenarios/explore/calls.py",
        "scenarios/explore/layout.py",
    ),
    "grpc": ("scenarios/cluster/rpc.py",),
    "kubernetes_validate": ("scenarios/k8s/schema_check.py",),
    "ray": (
        "agents/ppo/ray_crew.py",
        "agents/ppo/ray_rollouts.py",
        "scenarios/frame/ray_session.py",
        "scenarios/train/ray_workplace.py",
        "scenarios/train/sweep_ray.py",
    ),
    "mlflow": ("scenarios/train/mlflow_runs.py",),
    "redis": ("scenarios/cluster/redis_store.py",),
    "stable_baselines3": (
        "agents/flat/sb3_vec_env.py",
        "agents/scheduling/sb3_vec_env.py",
        "scenarios/train/sb3_policy.py",
    ),
}

collect_ignore = [path for extra, paths in NEEDS.items() if not find_spec(extra) for path in paths]

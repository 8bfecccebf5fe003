"""Modules that need an extra are left out where it is missing."""

from importlib.util import find_spec

NEEDS = {
    "ray": (
        "agents/ray_crew.py",
        "agents/ray_rollouts.py",
        "scenarios/ray_session.py",
        "scenarios/sweep_ray.py",
    ),
    "stable_baselines3": ("agents/sb3_vec_env.py",),
}

collect_ignore = [path for extra, paths in NEEDS.items() if not find_spec(extra) for path in paths]

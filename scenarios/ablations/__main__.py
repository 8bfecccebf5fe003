"""Measure what each part of Hi-PPO contributes."""

from scenarios.study.ablations.command import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

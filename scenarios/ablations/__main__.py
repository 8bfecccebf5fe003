"""Measure what each part of Hi-PPO contributes."""

from scenarios.study.ablations.command import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Compare Hi-PPO with a flat policy trained on each world."""

from scenarios.study.ablations.flat import main

if __name__ == "__main__":
    raise SystemExit(main())

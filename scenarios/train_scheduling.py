"""Train PPO of Stable-Baselines3 on the scheduling task, against never moving and rules."""

from scenarios.train.train_scheduling import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

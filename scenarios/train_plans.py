"""Train the plan policy of Hi-PPO."""

from scenarios.train.train_plans import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

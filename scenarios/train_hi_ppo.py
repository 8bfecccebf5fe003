"""Train the placement and move policies of Hi-PPO."""

from scenarios.train.train_hi_ppo import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

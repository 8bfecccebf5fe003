"""Train the local agent of Hi-PPO."""

from scenarios.train.train_local import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

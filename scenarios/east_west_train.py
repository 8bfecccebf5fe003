"""Train a placement policy on one world and report what it learnt."""

from scenarios.train.command import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

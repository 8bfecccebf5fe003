"""Simulate one training iteration."""

from scenarios.iteration.command import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

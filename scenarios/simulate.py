"""Simulate one training iteration."""

from scenarios.iteration.command import main

if __name__ == "__main__":
    raise SystemExit(main())

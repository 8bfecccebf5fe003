"""Measure the Pareto coverage of policies and planners."""

from scenarios.study.pareto.command import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

"""Measure the Pareto coverage of policies and planners."""

from scenarios.study.pareto.command import main

if __name__ == "__main__":
    raise SystemExit(main())

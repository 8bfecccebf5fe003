"""Measure the targets of the project."""

from scenarios.study.targets.command import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Measure the targets of the project."""

from scenarios.study.targets.command import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

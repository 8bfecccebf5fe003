"""List the worlds of a suite."""

from scenarios.suites.command import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

"""Reproduce published tables and measurements."""

from scenarios.reproduce.command import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

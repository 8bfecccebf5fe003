"""Reproduce published tables and measurements."""

from scenarios.reproduce.command import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Simulate a long training run on moving links."""

from scenarios.run.command import main

if __name__ == "__main__":
    raise SystemExit(main())

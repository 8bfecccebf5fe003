"""Explore a world, a job and a plan in the browser."""

from scenarios.explore.command import main

if __name__ == "__main__":
    raise SystemExit(main())

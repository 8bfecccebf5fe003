"""Train the scheduler of a world, and say what learning was worth on it."""

from scenarios.train.east_west.command import main

if __name__ == "__main__":
    raise SystemExit(main())

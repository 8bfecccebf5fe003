"""A watch over a training that re-decides when measurements arrive."""

from scenarios.watch.command import main

if __name__ == "__main__":
    raise SystemExit(main())

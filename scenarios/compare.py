"""Compare planners and schedulers on the same worlds."""

from scenarios.study.compare.command import main

if __name__ == "__main__":
    raise SystemExit(main())

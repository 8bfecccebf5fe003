"""List the worlds of a suite."""

from scenarios.suites.command import main

if __name__ == "__main__":
    raise SystemExit(main())

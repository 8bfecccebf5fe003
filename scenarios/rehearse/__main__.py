"""``python -m scenarios.rehearse``."""

from scenarios.rehearse.command import main

if __name__ == "__main__":
    raise SystemExit(main())

"""``python -m scenarios.measuring``."""

from scenarios.measuring.command import main

if __name__ == "__main__":
    raise SystemExit(main())

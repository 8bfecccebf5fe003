"""``python -m scenarios.measuring``."""

from scenarios.measuring.command import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

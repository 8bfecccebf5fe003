"""``python -m scenarios.launch``."""

from scenarios.launch.command import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

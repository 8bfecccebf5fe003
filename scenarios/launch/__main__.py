"""``python -m scenarios.launch``."""

from scenarios.launch.command import main

if __name__ == "__main__":
    raise SystemExit(main())

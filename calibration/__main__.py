"""Run a command of calibration."""

from calibration.commands.main import main

if __name__ == "__main__":
    raise SystemExit(main())

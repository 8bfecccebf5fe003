"""Measure robustness curves over bandwidth and latency changes."""

from scenarios.study.robustness.command import main

if __name__ == "__main__":
    raise SystemExit(main())

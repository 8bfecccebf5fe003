"""Simulate the same placements at every level of detail, and compare the levels."""

from scenarios.study.fidelity.command import main

if __name__ == "__main__":
    raise SystemExit(main())

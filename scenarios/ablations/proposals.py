"""Compare learned proposals of plans with random and nearest-neighbour ones."""

from scenarios.study.ablations.proposals import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

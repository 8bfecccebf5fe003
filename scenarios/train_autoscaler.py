"""Train a policy that scales an inference fleet, and compare it with rules on unseen days."""

from scenarios.autoscale.training import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

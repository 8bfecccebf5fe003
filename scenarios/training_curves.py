"""Draw the training curves of placement policies."""

from scenarios.measure.training_curves import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

"""Draw the training curves of placement policies."""

from scenarios.study.training_curves import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Train over a grid of seeds and hyper-parameters."""

from scenarios.train.sweep import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Store a run folder in MLflow."""

from scenarios.train.track import main

if __name__ == "__main__":
    raise SystemExit(main())

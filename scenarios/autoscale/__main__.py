"""Scale an inference fleet by policies."""

from scenarios.autoscale.command import main

if __name__ == "__main__":
    raise SystemExit(main())

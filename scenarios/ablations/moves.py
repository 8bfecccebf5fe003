"""Compare a move policy for plans of all families, trained here, with fixed rules."""

from scenarios.study.ablations.moves import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Compare policies with and without the preference as an input."""

from scenarios.study.ablations.preference import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Compare training runs over several seeds with the exact optimum."""

from scenarios.train.compare_seeds import main

if __name__ == "__main__":
    raise SystemExit(main())

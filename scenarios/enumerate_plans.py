"""Compare the search with the best of all plans of Megatron-LM, on small worlds."""

from scenarios.study.enumeration.command import main

if __name__ == "__main__":
    raise SystemExit(main())

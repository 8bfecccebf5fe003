"""Score a policy on the frozen benchmark of sites that come and go."""

from scenarios.study.score_command import main

if __name__ == "__main__":
    raise SystemExit(main())

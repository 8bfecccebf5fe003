"""One scheduling decision for people, with a report: what `agents.decide` prints, and a page."""

from scenarios.run.decide_command import main

if __name__ == "__main__":
    raise SystemExit(main())

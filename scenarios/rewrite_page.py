"""Run the commands that a page shows, and write what they print into it."""

from scenarios.run.page_outputs import main

if __name__ == "__main__":
    raise SystemExit(main())

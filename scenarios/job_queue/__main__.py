"""Schedule a queue of jobs under many policies."""

from scenarios.job_queue.command import main

if __name__ == "__main__":
    raise SystemExit(main())

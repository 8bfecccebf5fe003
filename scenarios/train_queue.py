"""Train a policy that orders queues of jobs, and compare it with rules on unseen queues."""

from scenarios.job_queue.training import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())

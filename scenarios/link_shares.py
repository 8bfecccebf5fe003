"""Compare job times by shares of links with jobs simulated message by message."""

from scenarios.job_queue.share_command import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Scheduler, nodes and commands of a cluster of real machines."""

from scenarios.cluster.command import main

if __name__ == "__main__":
    raise SystemExit(main())

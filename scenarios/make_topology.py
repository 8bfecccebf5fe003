"""Write a topology file from coordinates of data centres."""

from scenarios.suites.make_topology import main

if __name__ == "__main__":
    raise SystemExit(main())

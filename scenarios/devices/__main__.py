"""Read, show and use the topology of servers and clusters."""

from scenarios.devices.command import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Simulate in the congestion-unaware network: ``python -m astra_sim.unaware``."""

from collections.abc import Sequence

from astra_sim.commands.command_line import leave, run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command("unaware", argv)


if __name__ == "__main__":
    leave(main())

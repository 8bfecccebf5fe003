"""Simulate in the congestion-aware network: ``python -m astra_sim.aware``."""

from collections.abc import Sequence

from astra_sim.commands.command_line import leave, run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command("aware", argv)


if __name__ == "__main__":
    leave(main())

"""All commands: ``python -m scenarios`` lists them."""

from scenarios.entry.command import main_of_module

__all__ = ["main_of_module"]

if __name__ == "__main__":
    raise SystemExit(main_of_module())

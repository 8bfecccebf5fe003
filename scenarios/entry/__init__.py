"""One entry to all commands: ``eastwest COMMAND``, or ``python -m scenarios COMMAND``."""

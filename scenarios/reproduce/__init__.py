"""Commands that put the simulator beside published and measured figures: one module a table."""

"""Commands that compare the simulator with published and measured figures: one module a table."""

"""Many plans simulated at once by compiled code."""

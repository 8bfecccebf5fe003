"""Many plans simulated at once by compiled code: `simulation.simulate_many`."""

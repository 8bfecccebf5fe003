"""Explorer: a world, a job and a plan in the browser, with every figure as one changes them."""

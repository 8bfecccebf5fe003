"""The compiled twin of the engine: plans turned into arrays, and arrays into results."""

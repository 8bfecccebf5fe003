"""A watch over a training: measurements come in, and the plan in force stays or is left."""

"""Events, results and spans of the engine."""

"""Serving by the rules of splitwise-sim, Vidur and DistServe, which answers to their cases."""

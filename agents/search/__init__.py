"""Search for the bound plan that a trainer runs quickest: candidates, estimates, exact times."""

"""Rules for jobs on sites that come and go, and the bound of a clairvoyant."""

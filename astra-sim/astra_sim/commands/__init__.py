"""Command lines of ASTRA-sim's two analytical programs."""

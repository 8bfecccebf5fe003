"""The reference: ASTRA-sim runs, their traces, configurations and programs."""

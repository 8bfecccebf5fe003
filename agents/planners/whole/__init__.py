"""The search for a plan over all families: groups of domains, a pipeline in each."""

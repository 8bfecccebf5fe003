"""Clusters in the files of other systems: readers, writers and one table of formats."""

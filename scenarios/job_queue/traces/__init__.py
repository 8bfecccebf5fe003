"""Readers of public traces of GPU clusters: one file a form, one table of all."""

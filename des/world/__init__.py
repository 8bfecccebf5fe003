"""Domains and the links between them: topology, transport and routes."""

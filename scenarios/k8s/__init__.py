"""Kubernetes: scheduler extender and manifests."""

"""Extender of kube-scheduler, and manifests for it."""

from scenarios.k8s.command import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Benchmarks of tensorcore beside its peers: `make bench` and the dashboards of asv read the same rows."""

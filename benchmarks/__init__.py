"""Benchmarks on real data; `make bench` runs them all, `python -m benchmarks NAME` one."""

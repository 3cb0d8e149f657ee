"""Benchmarks on real data; `make bench` runs them all, `python -m tests.benchmarks NAME` one."""

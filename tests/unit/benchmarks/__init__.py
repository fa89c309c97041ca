"""Tests of ``convs2s.benchmarks``."""

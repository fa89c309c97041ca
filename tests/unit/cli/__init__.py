"""Tests of ``convs2s.cli``."""

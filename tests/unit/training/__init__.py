"""Tests of ``convs2s.training``."""

"""Tests of ``convs2s.pipeline``."""

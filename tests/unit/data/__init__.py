"""Tests of ``convs2s.data``."""

"""Tests of ``convs2s.models``."""

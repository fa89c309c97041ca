"""Tests of ``convs2s.download``."""

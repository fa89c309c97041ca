"""Tests of ``convs2s.decoding``."""

"""Tests of ``convs2s.scoring``."""

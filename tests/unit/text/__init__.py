"""Tests of ``convs2s.text``."""

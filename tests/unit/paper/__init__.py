"""Tests of ``convs2s.paper``."""

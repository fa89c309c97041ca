"""Tests of ``convs2s.publish``."""

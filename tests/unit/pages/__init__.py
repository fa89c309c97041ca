"""Tests of ``convs2s.pages``."""

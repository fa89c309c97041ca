"""Translate text with a model: search, hypotheses, unknown words."""

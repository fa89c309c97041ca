"""The version of training itself."""

TRAINING_VERSION = 4
"""Raised only when a change of the code changes results: it is part of a training's identity.

The workflow trains again when it changes, and for no other change of the code.
"""

"""Hostile inputs for every reader: ``python -m tests.faults.fuzzing`` (``make faults``)."""

"""Faults put into a copy of the checkout on purpose, each of which the default tests must find."""

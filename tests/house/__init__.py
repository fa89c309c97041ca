"""The rules of the house, as CONTRIBUTING.md states them."""

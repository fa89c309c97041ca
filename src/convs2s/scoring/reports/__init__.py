"""Lay out reports of scores.

Decoding does not import this package, so a change here does not rerun decoding jobs.
"""

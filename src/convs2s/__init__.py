"""Convolutional Sequence to Sequence Learning (Gehring et al. 2017), in small functions."""

__version__ = "0.1.0"

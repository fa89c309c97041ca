"""Attention on a page: the program that draws it, and its style; nothing is fetched."""

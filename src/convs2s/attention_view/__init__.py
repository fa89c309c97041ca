"""Attention that a page shows: what to draw, and the program that draws it; nothing is fetched."""

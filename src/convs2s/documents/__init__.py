"""Translate documents: their text is translated, and all else is kept as it is."""

"""A miniature mirror: every file that the tasks download, small, of text from the demo's grammar.

``docs/mirror.md`` says what it holds and what is planted in it.
"""

"""A miniature mirror: every file that the tasks download, small, of the demo corpus's text.

``docs/mirror.md`` says what it holds and what is planted in it.
"""

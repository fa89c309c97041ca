"""What the miniature mirror holds: every file that the tasks download, small, of the demo's text.

``docs/mirror.md`` says what it holds and what is planted in it.
"""

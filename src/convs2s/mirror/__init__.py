"""A miniature mirror: every file that the tasks download, small, of the demo corpus's text."""

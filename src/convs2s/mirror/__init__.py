"""A miniature mirror: a small copy of every file that the tasks download, with demo sentences."""

"""Download files, check them, and read the members of archives."""

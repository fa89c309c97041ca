"""Read files within limits and with checks, and write files that are either complete or absent."""

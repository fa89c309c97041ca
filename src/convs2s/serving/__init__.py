"""A server for demonstrations: requests in batches, and a page that asks it."""

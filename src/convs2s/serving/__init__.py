"""A server that translates requests in batches, with a web page to try it."""

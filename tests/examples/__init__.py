"""The examples of docs/extending.md, as a user runs them."""

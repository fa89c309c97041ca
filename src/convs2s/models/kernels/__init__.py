"""The operations that take most of the time, in faster forms than those of torch."""

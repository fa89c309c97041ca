"""Results that have to be the same: in any batch, on any number of workers, after a kill."""

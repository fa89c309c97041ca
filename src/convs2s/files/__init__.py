"""Files: what is read has bounds and checks, what is written is whole or is not there."""

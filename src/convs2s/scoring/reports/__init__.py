"""How reports of scores are laid out; decoding imports none of it, so that it runs no job again."""

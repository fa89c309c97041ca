"""File formats, commands, keys and pages hold what their documentation says."""

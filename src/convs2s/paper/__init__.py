"""The papers' tables and figures, with the papers' values beside ours."""

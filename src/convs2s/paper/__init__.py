"""The papers' tables and figures, their values beside ours."""

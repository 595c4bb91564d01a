"""A run on disk: written line by line, read back after a kill, merged and tabulated."""

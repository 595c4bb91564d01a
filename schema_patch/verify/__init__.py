"""Installed binaries, held against the operator table and against sources. Loads nothing that it judges."""

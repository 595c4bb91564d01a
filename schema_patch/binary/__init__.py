"""Installed libraries: the texts of their registrations judged, and new bytes for them. Compiles nothing."""

"""Python bytes -> registrations, calls and what they write; and the edits of both."""

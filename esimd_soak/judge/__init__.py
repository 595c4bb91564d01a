"""Statistics: what the records of a run say, and what they cannot say. Touches neither network nor disk."""

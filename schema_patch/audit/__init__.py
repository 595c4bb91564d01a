"""What source does, held against what it says: judges, suppressions and edits for any library."""

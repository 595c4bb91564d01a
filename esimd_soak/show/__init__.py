"""Results -> text, charts and HTML. Returns strings."""

"""Files as bytes with spans: read, edited, compared, journalled and written whole or not at all."""

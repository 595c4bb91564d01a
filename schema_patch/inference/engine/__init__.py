"""Follows the statements of a function and the calls in them to the stores."""

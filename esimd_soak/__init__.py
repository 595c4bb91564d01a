"""Is the served model right, under load, for hours?

Knows an HTTP server that generates text, and statistics. Knows neither torch, nor operators, nor ELF; of the rest of
the kit it imports only `schema_patch.model`, for findings and errors.
"""

__version__ = "0.1.0"

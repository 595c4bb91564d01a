"""Is the served model right, under load, for hours?

Knows an HTTP server that generates text, and statistics. Knows neither torch, nor operators, nor ELF, and imports
neither of the kit's other packages: it is a distribution of its own, which changes nothing of the system it measures.
"""

__version__ = "0.2.0"

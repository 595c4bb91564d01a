"""A source tree made into a verified wheel: compilers, interpreters, records. Knows no schema rule of its own."""

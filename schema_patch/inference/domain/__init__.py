"""The values of the inference: what a variable may be, what a path reaches, what known functions do."""

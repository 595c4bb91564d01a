"""C++ bytes -> registrations. The door to tree-sitter; the inference has the other."""

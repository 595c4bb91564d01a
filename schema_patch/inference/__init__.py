"""Which arguments does this C++ implementation write, and what does its return alias? Static inference with evidence.

Rooms, each knowing only those below it: `work` (all operators, earlier runs), `native` (what C++ hands to Python),
`unwritten`, `infer`, `operators`, `flattened`, `engine` (one function read), `domain` (values), `index` (what files
define).
"""

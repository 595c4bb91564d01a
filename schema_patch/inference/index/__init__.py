"""What C++ files define, found without a full parse: scans, macros, constants, syntax trees on demand."""

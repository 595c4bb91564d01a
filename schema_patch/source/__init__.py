"""Registrations in C++ judged by the table; new bytes planned, proved and written."""

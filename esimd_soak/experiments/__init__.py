"""Runs made of runs: a matrix of configurations, agreement of two servers, the guard of a card."""

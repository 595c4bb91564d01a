"""What text each registration of a library is given: its x86-64 code, followed. The one door to the decoder."""

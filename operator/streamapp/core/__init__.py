"""DECIDE: pure values and functions. No I/O, clock, log or randomness; time enters as an argument."""

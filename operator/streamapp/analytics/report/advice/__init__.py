"""Advice: what to change, the figures it rests on, and what speaks against it."""

"""How long pods are held, and what for."""

"""Connections to brokers: settings, TLS, SASL, deadlines, errors, and the coordinator of a group."""

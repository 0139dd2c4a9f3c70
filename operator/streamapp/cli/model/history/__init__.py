"""What happened to a StreamApp: entries from Events, from the flight record, and from predictions."""

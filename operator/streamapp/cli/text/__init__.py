"""What all screens share: durations, bars, text without control characters, and the console."""

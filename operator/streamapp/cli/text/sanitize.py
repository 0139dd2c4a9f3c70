"""Text of others, which may hold sequences that steer a terminal."""


def plain(text: str) -> str:
    """The same in one line: white space is a space, and what cannot be printed a replacement character."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else "\ufffd" for mark in " ".join(text.split()))

"""Removes what would steer a terminal from text of others."""


def plain(text: str) -> str:
    """The text in one line, with a replacement character for each unprintable one."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else "\ufffd" for mark in " ".join(text.split()))

"""`sasl.jaas.config`: what is read as Java reads it, and that no text makes the reader slow."""

import contextlib

import pytest

from streamapp.kafka.connection.errors import InvalidSettingsError
from streamapp.kafka.connection.jaas import MAX_LENGTH, login_options

MODULE = "PlainLoginModule"


def options(text: str) -> dict[str, str]:
    return login_options(f"a.b.{MODULE} required {text};", MODULE)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('username="a" password="b"', {"username": "a", "password": "b"}),
        ("username='a b'\n  password=c", {"username": "a b", "password": "c"}),
        (r'password="a\"b\\c;=\n"', {"password": 'a"b\\c;=\n'}),
        ('debug = true ssl.truststore.certificates="x"', {"debug": "true", "ssl.truststore.certificates": "x"}),
        ('password=""', {"password": ""}),
        ("", {}),
    ],
)
def test_options_are_read_as_java_reads_them(text: str, read: dict[str, str]) -> None:
    assert options(text) == read


@pytest.mark.parametrize("text", ['username="a', "username", "=x", 'username="a"b', 'a="1"; c.D required b="2"'])
def test_what_java_would_refuse_is_refused_without_a_word_of_it(text: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        options(text)
    assert text not in str(caught.value)
    assert caught.value.why == "sasl.jaas.config cannot be read"


@pytest.mark.timeout(10)
@pytest.mark.parametrize("part", ["a", "a ", 'a="', "\\", 'a="b" ', "required "])
def test_no_text_takes_long(part: str) -> None:
    """A pattern that starts anew at each character took 13 s for 40,000 of them."""
    text = part * (MAX_LENGTH // len(part) - 20)
    with contextlib.suppress(InvalidSettingsError):
        options(text)


def test_more_than_a_login_can_have_is_refused_unread() -> None:
    with pytest.raises(InvalidSettingsError, match=f"at most {MAX_LENGTH} are read"):
        options("a=b " * MAX_LENGTH)

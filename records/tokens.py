"""The one token estimator. Pure.

English and code come to about 4 characters a token, CJK to about 0.65 tokens a character with current
tokenizers. Counting scripts one by one is slow on megabytes, so the share of wide characters is read
off the UTF-8 length: ASCII takes one byte, CJK three, hence `extra / 2` of them.
"""

CHARACTERS_PER_TOKEN = 4
TOKENS_PER_WIDE_CHARACTER = 0.65


def estimate(text: str) -> int:
    """Tokens in `text`, at least 1 unless it is empty."""
    characters = len(text)
    if not characters:
        return 0
    if text.isascii():
        return max(1, characters // CHARACTERS_PER_TOKEN)
    return _estimate(characters, len(text.encode("utf-8", "surrogatepass")))


def estimate_bytes(data: bytes) -> int:
    """The same of UTF-8 text, without decoding megabytes of it."""
    size = len(data)
    if not size:
        return 0
    if data.isascii():
        return max(1, size // CHARACTERS_PER_TOKEN)
    return _estimate(len(data.translate(None, _CONTINUATION)), size)


_CONTINUATION = bytes(range(0x80, 0xC0))


def _estimate(characters: int, size: int) -> int:
    wide = (size - characters) / 2
    return max(1, round((characters - wide) / CHARACTERS_PER_TOKEN + wide * TOKENS_PER_WIDE_CHARACTER))

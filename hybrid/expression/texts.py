"""Text functions of expressions, after Pinot's StringFunctions, which use Commons Lang.

Characters are code points; Java counts UTF-16 units.
"""

from __future__ import annotations

import base64
import hashlib
import unicodedata
from collections.abc import Callable
from urllib.parse import quote_plus, unquote_plus

from hybrid.expression.arguments import LENGTH_MAX, raw, shown, text, whole
from hybrid.expression.rules import Rule
from hybrid.schema import characters

# The result of splitPart where there is no such part: Pinot's default of a STRING.
_NO_PART = "null"


def split_text(value: object, delimiter: object, limit: object = 0) -> list[object]:
    """Pinot's split: adjacent delimiters count once, leading delimiters are skipped; part `limit` is the rest."""
    content, between, most = text(value), text(delimiter), whole(limit)
    if not between:
        words = content.split(None, most - 1) if most > 0 else content.split()
        return list(words)
    parts: list[object] = []
    start = 0
    while start < len(content):
        end = content.find(between, start)
        if end == start:
            start += len(between)
            continue
        if end < 0 or len(parts) + 1 == most:
            return [*parts, content[start:]]
        parts.append(content[start:end])
        start = end + len(between)
        if start == len(content):
            parts.append("")
    return parts


def _split_part(value: object, delimiter: object, *limit_and_index: object) -> object:
    *limit, index = map(whole, limit_and_index)
    parts = split_text(value, delimiter, *limit)
    return parts[index] if -len(parts) <= index < len(parts) else _NO_PART


def cut(value: object, begin: object, end: object = -1) -> str:
    """Pinot's substr: from `begin` (from 0) to before `end`; -1 is the end of the text."""
    content, last = text(value), whole(end)
    return _between(content, whole(begin), len(content) if last == -1 else last)


def part(value: object, begin: object, length: object = None) -> str:
    """SQL's substring: from `begin` (from 1), `length` characters."""
    content, position = text(value), whole(begin)
    first = position - 1 if position > 0 else position + len(content) if position < 0 else -1
    if length is not None and first < 0:  # positions before the text count, as in SQL
        return content[: max(0, first + whole(length))]
    first = max(first, 0)
    return _between(content, first, len(content) if length is None else first + whole(length))


def _between(found: str, begin: int, end: int) -> str:
    """StringUtils.substring: negative positions count from the end."""
    first = max(0, begin + len(found)) if begin < 0 else begin
    last = max(0, end + len(found)) if end < 0 else end
    return found[first:last] if first <= last else ""


def trimmed(value: object, characters: object = characters.TRIMMED, end: str = "BOTH") -> str:
    """TRIM, of both ends or one."""
    content, which = text(value), text(characters)
    if end in {"BOTH", "LEADING"}:
        content = content.lstrip(which) if which else content
    return content.rstrip(which) if which and end in {"BOTH", "TRAILING"} else content


def _concat(first: object, second: object, separator: object = "") -> str:
    return text(first) + text(separator) + text(second)


def _concat_ws(separator: object, *values: object) -> str | None:
    """The values that are not null, joined with the separator."""
    if separator is None:
        return None
    return _checked(text(separator).join(text(value) for value in values if value is not None))


def _replace(value: object, search: object, replacement: object) -> str:
    content, what = text(value), text(search)
    return _checked(content.replace(what, text(replacement))) if what else content


def _padding(value: object, size: object, pad: object) -> str:
    content, width, filler = text(value), whole(size), text(pad) or " "
    missing = _length(width) - len(content)
    return (filler * (missing // len(filler) + 1))[:missing] if missing > 0 else ""


def _repeat(value: object, *separator_and_times: object) -> str:
    content = text(value)
    separator, times = ("", *separator_and_times)[-2:]
    between, count = text(separator), max(0, whole(times))
    _length(count * (len(content) + len(between)))
    return between.join([content] * count)


def _position(value: object, search: object, instance: object = 1) -> int:
    """Pinot's strpos: the position, from 0, of occurrence number `instance`, or -1."""
    content, what, place = text(value), text(search), -1
    for _ in range(min(max(whole(instance), 0), len(content) + 1)):
        place = content.find(what, place + 1)
        if place < 0:
            return -1
    return place


def _first_code(value: object) -> int:
    content = text(value)
    if not content:
        raise ValueError("an empty text has no first character")
    return ord(content[0])


def _character(code: object) -> str:
    code_point = whole(code)
    if not 0 <= code_point <= 0x10FFFF or 0xD800 <= code_point <= 0xDFFF:
        raise ValueError(f"{code_point} is not a code point")
    return chr(code_point)


def _encode_url(value: object) -> str:
    """Java's URLEncoder."""
    return quote_plus(text(value), safe="*").replace("~", "%7E")


def _decode_url(value: object) -> str:
    return unquote_plus(text(value), errors="strict")


def _from_base64(value: object) -> bytes:
    try:
        written = text(value)
        return base64.b64decode(written + "=" * (-len(written) % 4), validate=True)  # padding is optional, as in Java
    except ValueError as error:
        raise ValueError(f"{shown(value)} is not Base64") from error


def _ascii(value: object) -> bytes:
    """Java's encoding: a character that is not ASCII becomes a question mark."""
    return text(value).encode("ascii", "replace")


def _from_utf8(value: object) -> str:
    """Java's decoding: invalid UTF-8 becomes a replacement character."""
    return raw(value).decode("utf-8", "replace")


def _hex_digest(name: str) -> Callable[[object], str]:
    return lambda value: hashlib.new(name, raw(value), usedforsecurity=False).hexdigest()


def _length(size: int) -> int:
    if size > LENGTH_MAX:
        raise ValueError(f"a text of {size} characters is too long: at most {LENGTH_MAX}")
    return size


def _checked(found: str) -> str:
    _length(len(found))
    return found


RULES: dict[str, Rule] = {
    "upper": Rule(1, 1, lambda value: characters.upper(text(value))),
    "lower": Rule(1, 1, lambda value: characters.lower(text(value))),
    "trim": Rule(1, 1, trimmed),
    "ltrim": Rule(1, 1, lambda value: text(value).lstrip(characters.SPACES)),
    "rtrim": Rule(1, 1, lambda value: text(value).rstrip(characters.SPACES)),
    "length": Rule(1, 1, lambda value: len(text(value))),
    "reverse": Rule(1, 1, lambda value: text(value)[::-1]),
    "substr": Rule(2, 3, cut),
    "substring": Rule(2, 3, part),
    "left": Rule(2, 2, lambda value, size: text(value)[: max(0, whole(size))]),
    "leftSubStr": Rule(2, 2, lambda value, size: text(value)[: max(0, whole(size))]),
    "right": Rule(2, 2, lambda value, size: text(value)[max(0, len(text(value)) - max(0, whole(size))) :]),
    "rightSubStr": Rule(2, 2, lambda value, size: text(value)[max(0, len(text(value)) - max(0, whole(size))) :]),
    "concat": Rule(2, 3, _concat),
    "concatWS": Rule(3, None, _concat_ws, nulls=True),
    "replace": Rule(3, 3, _replace),
    "remove": Rule(2, 2, lambda value, search: _replace(value, search, "")),
    "repeat": Rule(2, 3, _repeat),
    "split": Rule(2, 3, split_text),
    "stringToArray": Rule(2, 3, split_text),
    "splitPart": Rule(3, 4, _split_part),
    "startsWith": Rule(2, 2, lambda value, search: text(value).startswith(text(search))),
    "endsWith": Rule(2, 2, lambda value, search: text(value).endswith(text(search))),
    "contains": Rule(2, 2, lambda value, search: text(search) in text(value)),
    "strpos": Rule(2, 3, _position),
    "strrpos": Rule(2, 2, lambda value, search: text(value).rfind(text(search))),
    "lpad": Rule(3, 3, lambda value, size, pad: _padding(value, size, pad) + text(value)),
    "rpad": Rule(3, 3, lambda value, size, pad: text(value) + _padding(value, size, pad)),
    "codepoint": Rule(1, 1, _first_code),
    "chr": Rule(1, 1, _character),
    "normalize": Rule(1, 1, lambda value: unicodedata.normalize("NFC", text(value))),
    "encodeUrl": Rule(1, 1, _encode_url),
    "decodeUrl": Rule(1, 1, _decode_url),
    "toUtf8": Rule(1, 1, lambda value: text(value).encode()),
    "fromUtf8": Rule(1, 1, _from_utf8),
    "toAscii": Rule(1, 1, _ascii),
    "fromAscii": Rule(1, 1, lambda value: raw(value).decode("ascii", "replace")),
    "toBase64": Rule(1, 1, lambda value: base64.b64encode(raw(value)).decode()),
    "fromBase64": Rule(1, 1, _from_base64),
    "hexToBytes": Rule(1, 1, raw),
    "bytesToHex": Rule(1, 1, lambda value: raw(value).hex()),
    "md5": Rule(1, 1, _hex_digest("md5")),
    "sha": Rule(1, 1, _hex_digest("sha1")),
    "sha256": Rule(1, 1, _hex_digest("sha256")),
    "sha512": Rule(1, 1, _hex_digest("sha512")),
}

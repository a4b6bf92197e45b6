"""The text of bytes: UTF-8, UTF-16 and UTF-32 with a byte order mark, else a detected encoding; never a binary."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from trivet.files.formats import UnreadableError, missing

DETECTED_BYTES = 200_000  # of a file that is not UTF-8: what the detection looks at
#: What is looked for, the first one where several fit alike: the code pages that files of today are still written in.
#: With all of Python's encodings a short French text is taken for one of a dead system.
ENCODINGS = ["cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256"]
ENCODINGS += ["cp932", "euc_jp", "gb18030", "big5", "euc_kr"]
#: Of all characters. Random bytes have 0.1, a text in a code page has none; a log with colours has escapes only.
MAX_CONTROLS = 0.02

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_CONTROLS = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")

#: The first bytes of a format that is not text. The short ones of text alone (``MZ``, ``BM``) are left to the controls.
_MAGIC = {
    b"%PDF-": "PDF",
    b"PK\x03\x04": "ZIP",
    b"PK\x05\x06": "ZIP",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old or encrypted Office file",
    b"\x89PNG": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"II*\x00": "TIFF",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!": "RAR",
    b"\x7fELF": "ELF",
    b"SQLite format 3": "SQLite",
    b"PAR1": "Parquet",
    b"OggS": "Ogg",
    b"ID3": "MP3",
    b"fLaC": "FLAC",
    b"wOFF": "a font",
    b"wOF2": "a font",
}


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text, and the encoding where it had to be detected."""

    text: str
    detected: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"read as {self.detected}",) if self.detected else ()


def binary_format(content: bytes) -> str:
    """Return the name of the binary format that the first bytes belong to; an empty text for none."""
    return next((name for magic, name in _MAGIC.items() if content.startswith(magic)), "")


def decode(content: bytes, declared: str = "") -> Decoded:
    """Return the text of bytes, in the encoding that they declare themselves if they do; refuse a binary."""
    marked = next((name for mark, name in _MARKS if content.startswith(mark)), "")
    if not marked and (known := binary_format(content)):
        raise UnreadableError(f"binary ({known})")
    if content.startswith(b"{\\rtf"):  # text by its bytes, and markup for the most part
        raise UnreadableError("RTF; save it as DOCX or as text")
    if not marked and b"\0" in content:
        raise UnreadableError("binary")
    for name in (marked, declared, "" if marked else "utf-8"):
        if name and (text := _decoded(content, name)) is not None:
            return Decoded(_checked(text))
    if marked:
        raise UnreadableError(f"not {marked.removesuffix('-sig').upper()}, though its byte order mark says so")
    name = _detected(content[:DETECTED_BYTES])
    text = _decoded(content, name)
    if text is None:
        raise UnreadableError(f"not UTF-8, nor {name} as its beginning is; convert it to UTF-8")
    return Decoded(_checked(text), name)


def _decoded(content: bytes, name: str) -> str | None:
    try:
        return content.decode(name)
    except (UnicodeDecodeError, LookupError):
        return None


def _checked(text: str) -> str:
    if "\0" in text or len(_CONTROLS.findall(text)) > MAX_CONTROLS * len(text):
        raise UnreadableError("binary")
    return text


def _detected(content: bytes) -> str:
    try:
        import charset_normalizer
    except ImportError as error:
        raise UnreadableError(f"not UTF-8; convert it (detecting its encoding {missing('files')})") from error
    found = charset_normalizer.from_bytes(content, cp_isolation=ENCODINGS)
    if not found:
        raise UnreadableError("binary, or in an encoding that cannot be detected; convert it to UTF-8")
    ranked = [
        (match.chaos, -match.coherence, min(ENCODINGS.index(name) for name in names))
        for match in found
        if (names := {match.encoding, *match.could_be_from_charset} & set(ENCODINGS))
    ]
    return ENCODINGS[min(ranked)[-1]]

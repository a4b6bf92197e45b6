"""Zip containers (DOCX, PPTX, EPUB), opened only if they are whole and not larger than their limits when unpacked."""

from __future__ import annotations

import io
from zipfile import BadZipFile, ZipFile

from trivet.files.encoding import binary_format
from trivet.files.formats import UnreadableError

MAX_UNPACKED = 250_000_000  # bytes of all members, as the container declares them; reading stops there
MAX_MEMBERS = 10_000
_ENCRYPTED = 0x1  # the bit in the flags of a member


def open_zip(content: bytes) -> ZipFile:
    """Return the container; refuse one that is broken, encrypted or too large."""
    known = binary_format(content)
    if known and known != "ZIP":
        raise UnreadableError(f"not the ZIP container that its suffix says, but {known}")
    try:
        container = ZipFile(io.BytesIO(content))
    except BadZipFile as error:
        raise UnreadableError(f"broken: {str(error).lower()}") from error
    members = container.infolist()
    size = sum(member.file_size for member in members)
    if size > MAX_UNPACKED:
        raise UnreadableError(f"larger than {MAX_UNPACKED // 1_000_000} MB when unpacked ({size / 1e6:,.0f} MB)")
    if len(members) > MAX_MEMBERS:
        raise UnreadableError(f"more than {MAX_MEMBERS:,} members ({len(members):,})")
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise UnreadableError("encrypted; save it without a password")
    return container

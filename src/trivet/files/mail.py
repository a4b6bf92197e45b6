"""E-mail: a message, and the messages of a mailbox, which are linked to what they reply to."""

from __future__ import annotations

import email
import email.policy
import hashlib
import re
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import parsedate_to_datetime

from trivet.files import markup
from trivet.files.encoding import binary_format
from trivet.files.formats import Part, UnreadableError

_SEPARATOR = re.compile(rb"(?:\A|\r?\n\r?\n)From [^\n]*\n")  # a mailbox has one before each message
_QUOTED = re.compile(rb"^>(?=>*From )", re.MULTILINE)
_ID = re.compile(r"<[^<>\s]+>")
REPLY = "reply-to"


def read(content: bytes) -> list[Part]:
    part = _part(content)
    return [Part(part.text, part.title, "", part.kind, part.created, part.meta, notes=part.notes)]


def read_mailbox(content: bytes) -> list[Part]:
    if content.strip() and not content.startswith(b"From "):
        raise UnreadableError("not a mailbox: it does not begin with a line 'From '")
    messages = (_QUOTED.sub(b"", message) for message in _SEPARATOR.split(content) if message.strip())
    return [_part(message) for message in messages]


def _part(content: bytes) -> Part:
    known = binary_format(content)
    message = email.message_from_bytes(content, policy=email.policy.default)
    if known or not isinstance(message, EmailMessage) or not message.keys():
        raise UnreadableError(f"not an e-mail, but {known}" if known else "not an e-mail: it has no headers")
    key = _id(message, "Message-ID") or hashlib.blake2b(content, digest_size=8).hexdigest()
    thread = _ids(message, "References") or _ids(message, "In-Reply-To") or [key]
    reply = _ids(message, "In-Reply-To")[:1]
    text, note = _text(message)
    meta = {
        "sender": _header(message, "From"),
        "to": _header(message, "To"),
        "thread": thread[0],
        "attachments": [name for item in message.iter_attachments() if (name := item.get_filename())],
    }
    links = tuple((target, REPLY) for target in reply)
    kept = {name: value for name, value in meta.items() if value}
    return Part(text, _header(message, "Subject"), key, "message", _sent(message), kept, links, (note,) if note else ())


def _text(message: EmailMessage) -> tuple[str, str]:
    """Return the text, and what could not be read well."""
    if message.get_content_type() in ("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"):
        raise UnreadableError("encrypted; save it decrypted")
    body = message.get_body(("plain", "html"))
    if body is None:
        return "", "a message without a text"
    try:
        text, note = body.get_content(), ""
    except (LookupError, UnicodeDecodeError):  # a charset that nobody knows
        payload = body.get_payload(decode=True)
        text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else str(payload)
        note = f"an unknown charset {body.get_content_charset()!r}, read as UTF-8"
    return markup.of_html(text) if body.get_content_subtype() == "html" else text.replace("\0", "").strip(), note


def _header(message: EmailMessage, name: str) -> str:
    return " ".join(str(message.get(name, "")).split())


def _ids(message: EmailMessage, name: str) -> list[str]:
    return [found.strip("<>") for found in _ID.findall(str(message.get(name, "")))]


def _id(message: EmailMessage, name: str) -> str:
    return next(iter(_ids(message, name)), "")


def _sent(message: EmailMessage) -> datetime | None:
    try:
        found = parsedate_to_datetime(str(message["Date"]))
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)

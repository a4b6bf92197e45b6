"""E-mail: one message, a mailbox, threads and what cannot be read."""

from __future__ import annotations

from email.message import EmailMessage

import pytest

from trivet.files import formats
from trivet.files.formats import UnreadableError


def message(subject: str = "Pump", text: str = "It leaks.", html: str = "", **headers: str) -> EmailMessage:
    made = EmailMessage()
    made["Subject"], made["From"], made["To"] = subject, "Ada <ada@example.org>", "bob@example.org"
    made["Date"] = "Mon, 01 Jun 2026 10:00:00 +0200"
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    if text:
        made.set_content(text)
    if html:
        made.add_alternative(html, subtype="html") if text else made.set_content(html, subtype="html")
    return made


def test_a_message_has_its_sender_its_time_and_the_names_of_its_attachments() -> None:
    made = message("Grüße", "Café")
    made.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="plän.pdf")
    [part] = formats.parts(made.as_bytes(), "eml")
    assert (part.title, part.text, part.kind, part.key) == ("Grüße", "Café", "message", "")
    assert (part.meta["sender"], part.meta["attachments"]) == ("Ada <ada@example.org>", ["plän.pdf"])
    assert part.created is not None
    assert part.created.isoformat() == "2026-06-01T10:00:00+02:00"


def test_html_is_read_where_there_is_no_plain_text() -> None:
    html = "<h1>News</h1><p>Two <b>pumps</b></p>"
    assert formats.parts(message(text="", html=html).as_bytes(), "eml")[0].text == "# News\n\nTwo pumps"
    assert formats.parts(message(text="plain", html=html).as_bytes(), "eml")[0].text == "plain"


def test_a_mailbox_is_its_messages_linked_to_what_they_answer() -> None:
    first = message(Message_ID="<a@x>").as_bytes()
    second = message("Re: Pump", ">From here it drips.", Message_ID="<b@x>", In_Reply_To="<a@x>", References="<a@x>")
    box = b"From ada Mon Jun  1\n" + first + b"\n\nFrom bob Mon Jun  1\n" + second.as_bytes() + b"\n"
    one, two = formats.parts(box, "mbox")
    assert (one.key, two.key, two.links) == ("a@x", "b@x", (("a@x", "reply-to"),))
    assert one.meta["thread"] == two.meta["thread"] == "a@x"
    assert two.text == "From here it drips."


def test_a_message_without_an_id_keeps_its_key() -> None:
    box = b"From x\n" + message().as_bytes()
    assert formats.parts(box, "mbox")[0].key == formats.parts(box, "mbox")[0].key != ""


def test_a_broken_date_and_charset_are_read_around() -> None:
    raw = b"Subject: x\nDate: never\nContent-Type: text/plain; charset=klingon\n\nqapla'"
    [part] = formats.parts(raw, "eml")
    assert (part.created, part.text) == (None, "qapla'")
    assert part.notes == ("an unknown charset 'klingon', read as UTF-8",)


@pytest.mark.parametrize(
    ("content", "format", "reason"),
    [
        (b"no headers here", "eml", "not an e-mail"),
        (b"\x89PNG\r\n\0", "eml", "but PNG"),
        (b"Subject: x\nContent-Type: multipart/encrypted; boundary=b\n\n--b\n\nx\n--b--", "eml", "encrypted"),
        (b"words", "mbox", "not a mailbox"),
        (b"\n", "mbox", "empty"),
    ],
)
def test_what_cannot_be_read_is_refused(content: bytes, format: str, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        formats.parts(content, format)

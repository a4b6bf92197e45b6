"""PDF: the text of each page. Scans and encrypted files are refused."""

from __future__ import annotations

import io
import logging

from trivet.files.formats import PAGE_BREAK, Part, UnreadableError, missing

MAX_PAGES = 20_000

logging.getLogger("pypdf").addHandler(logging.NullHandler())  # or its remarks on a file go to stderr


def read(content: bytes) -> list[Part]:
    try:
        import pypdf
        from pypdf.errors import DependencyError
    except ImportError as error:
        raise missing("files") from error

    if b"%PDF-" not in content[:1024]:
        raise UnreadableError("not a PDF, though its suffix says so")
    file = pypdf.PdfReader(io.BytesIO(content))
    try:
        if file.is_encrypted and not file.decrypt(""):  # many have an empty password, which lets anyone read
            raise UnreadableError("encrypted; save it without a password")
    except DependencyError as error:
        raise missing("files") from error
    if len(file.pages) > MAX_PAGES:
        raise UnreadableError(f"more than {MAX_PAGES:,} pages ({len(file.pages):,})")
    pages = [page.extract_text().replace("\0", "").replace("\f", "\n").strip() for page in file.pages]
    if pages and not any(pages):
        raise UnreadableError(f"a scan: no text in {_counted(len(pages))}; recognise its text first, as with ocrmypdf")
    blank = sum(not page for page in pages)
    notes = (f"no text in {blank} of {_counted(len(pages))}",) if blank else ()
    title = (file.metadata.title if file.metadata else None) or ""
    return [Part(PAGE_BREAK.join(pages), title.strip(), meta={"pages": len(pages)}, notes=notes)]


def _counted(pages: int) -> str:
    return f"{pages:,} page" + "s" * (pages != 1)

"""Redaction of secrets in texts, by their known forms.

Known forms only: keys with a vendor's prefix, tokens of a known structure, private key blocks, values named as a
password. Guessing by randomness would also remove commit hashes and UUIDs, which a memory needs. So this lowers a risk;
it does not prove that no secret is left. Repetitions are bounded, so that no text makes a pattern slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

API_KEY, TOKEN, PRIVATE_KEY, PASSWORD = "api key", "token", "private key", "password"

_EDGE, _END = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_-])"

# The vendors' documented forms. A prefix that also occurs in words ("sk-") needs a long run with a digit after it.
_KEYS = (
    r"sk-(?:[A-Za-z0-9]+-){0,4}(?=[A-Za-z0-9_]*[0-9])[A-Za-z0-9_]{16,}[A-Za-z0-9_-]*",  # OpenAI, Anthropic, OpenRouter
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}",  # Stripe
    r"whsec_[A-Za-z0-9+/]{24,}={0,2}",
    r"gh[pousr]_[A-Za-z0-9]{30,}",  # GitHub
    r"github_pat_[A-Za-z0-9_]{22,}",
    r"gl(?:pat|ptt|rt|dt|cbt)-[A-Za-z0-9_-]{20,}",  # GitLab
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",  # AWS access key ids, base 32
    r"AIza[A-Za-z0-9_-]{35}",  # Google
    r"xox[abeoprs]-(?:[A-Za-z0-9]+-){0,4}[A-Za-z0-9]{8,}",  # Slack
    r"xapp-[0-9]-[A-Za-z0-9-]{20,}",
    r"hf_[A-Za-z0-9]{30,}",  # Hugging Face
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-AgE[A-Za-z0-9_-]{40,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",  # SendGrid
    r"do[opr]_v1_[a-f0-9]{64}",  # DigitalOcean
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",  # Shopify
    r"dapi[a-f0-9]{32}",  # Databricks
    r"lin_api_[A-Za-z0-9]{32,}",  # Linear
    r"AGE-SECRET-KEY-1[A-Z0-9]{50,}",
)
_PEM = re.compile(
    r"-----BEGIN (?P<what>(?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?)-----"
    r"(?:(?:(?!-----BEGIN).)*?-----END (?P=what)-----"
    r"|(?:\s{0,8}(?:\\n)?[A-Za-z0-9+/=]{16,})+(?:\s{0,8}[A-Za-z0-9+/]{1,15}={1,2})?)",  # cut off: its key lines
    re.DOTALL,
)
_JWT = re.compile(rf"{_EDGE}eyJ[A-Za-z0-9_-]{{8,}}\.eyJ[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]{{16,}}{_END}")
_KEY = re.compile(rf"{_EDGE}(?:{'|'.join(_KEYS)}){_END}")
_TELEGRAM = re.compile(r"(?<![A-Za-z0-9_:-])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])")
_BEARER = re.compile(r"(?i)(\bbearer\s+)(?=[a-z0-9._~+/-]*[0-9])[a-z0-9._~+/-]{20,}=*")
_BASIC = re.compile(r"(?i)(\bauthorization[\"']?\s*[:=]\s*[\"']?basic\s+)[a-z0-9+/]{8,}={0,2}")
_URL = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]{1,30}://[^\s/:@?#\"'<>]{0,200}:)([^\s/@?#\"'<>]{1,500})(?=@[a-z0-9\[])")
# "password = hunter2pass", "api_key": "…": the name marks the value. Code and placeholders are not secrets.
_NAMED = re.compile(
    r"(?i)((?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token)"
    r"[\"']?\s{0,8}(?:=|:|\bis\b)\s{0,8})([\"']?)([^\s\"'`,;()\[\]{}<>]{8,})(\2)(?![(\[{])"
)
_BLANK = re.compile(r"(?i)[*x.•_-]+|.*(?:\$|\[redacted|your|example|changeme|placeholder|environ|getenv|config).*")


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with each secret replaced by ``[redacted: kind]``, and the kind of each."""
    found: list[str] = []

    def replaced(kind: str, keep: int = 0) -> Callable[[re.Match[str]], str]:
        def put(match: re.Match[str]) -> str:
            found.append(kind)
            return f"{match[keep] if keep else ''}[redacted: {kind}]"

        return put

    def url(match: re.Match[str]) -> str:
        return match[0] if _blank(match[2]) else replaced(PASSWORD, 1)(match)

    def named(match: re.Match[str]) -> str:
        value = match[3]
        secret = (any(mark.isdigit() for mark in value) and any(mark.isalpha() for mark in value)) and not _blank(value)
        if not secret or "://" in value:
            return match[0]
        found.append(PASSWORD)
        return f"{match[1]}{match[2]}[redacted: {PASSWORD}]{match[4]}"

    text = _PEM.sub(replaced(PRIVATE_KEY), text)
    text = _JWT.sub(replaced(TOKEN), text)
    text = _KEY.sub(replaced(API_KEY), text)
    text = _TELEGRAM.sub(replaced(API_KEY), text)
    text = _BEARER.sub(replaced(TOKEN, 1), text)
    text = _BASIC.sub(replaced(PASSWORD, 1), text)
    text = _URL.sub(url, text)
    text = _NAMED.sub(named, text)
    return text, tuple(found)


def counted(kinds: Mapping[str, int]) -> str:
    """Return the number of secrets of each kind, as a text for people."""
    return ", ".join(f"{count:,} × {kind}" for kind, count in sorted(kinds.items()))


def _blank(value: str) -> bool:
    return _BLANK.fullmatch(value) is not None


def redact_values(value: Any) -> tuple[Any, tuple[str, ...]]:
    """Redact every text in JSON-like data; keys stay unchanged."""
    if isinstance(value, str):
        return redact(value)
    found: list[str] = []

    def inner(item: Any) -> Any:
        clean, kinds = redact_values(item)
        found.extend(kinds)
        return clean

    if isinstance(value, Mapping):
        value = {key: inner(item) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        value = [inner(item) for item in value]
    return value, tuple(found)

"""Which words of the question are names that mean exactly themselves?

Error codes, CVE numbers, UUIDs, hashes, versions, paths, constants, names of code. The analyser keeps each as one whole
term beside its parts; here it is told that the whole is what was meant. Plain words, years and counts are not names.
"""

from __future__ import annotations

import re

_IDENTIFIER = re.compile(
    r"""(?<![\w/.@-])(?:
      [0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}       # UUID
    | CVE-\d{4}-\d{4,}                                            # CVE-2021-44228
    | [A-Z]{1,10}-?\d{3,}[A-Z0-9]*                                # E1234, ORA-00942, ABC-123; not CD34, IL-10
    | 0x[0-9a-fA-F]{2,}                                           # 0x80070005
    | (?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}                   # a commit
    | [A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+                      # ERR_FOO_BAR, snake_case
    | v?\d+\.\d+(?:\.\d+)+(?:[-+.][0-9A-Za-z.]+)?                 # 1.2.3, v2.0.1-rc1
    | \.{0,2}/?(?:[\w.@-]+/)+[\w.@-]+\.\w{1,5}                    # src/types.py
    | [A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w+)+(?:\(\))?             # os.path.join, std::sort
    | [a-z]{2,}(?:[A-Z][a-z]+)+                                   # getUserName; not mRNA
    )(?![\w@-])""",
    re.VERBOSE,
)
_YEAR_OR_DAY = re.compile(r"[A-Z]{0,2}(?:19|20)\d\d")
_SENTENCE = re.compile(r"[a-z]{2,}\.[A-Z][a-z]+")  # "…the end.Then": two sentences without a blank
MAX_IDENTIFIERS = 16


def find_identifiers(text: str) -> tuple[str, ...]:
    found = dict.fromkeys(match[0].removesuffix("()") for match in _IDENTIFIER.finditer(text))
    names = [name for name in found if not _YEAR_OR_DAY.fullmatch(name) and not _SENTENCE.fullmatch(name)]
    return tuple(names[:MAX_IDENTIFIERS])

"""Look for known weaknesses of the dependencies with pip-audit, and say so where its database cannot be reached.

pip-audit asks a database on the network. Where that cannot be reached it passes every package over and still says that
it found nothing; here such a package counts as not compared, and the last line says how many were.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

COMMAND = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off", "--skip-editable"]


def verdict(packages: Sequence[Mapping[str, Any]]) -> tuple[list[str], int]:
    """(what to say, exit code)"""
    compared = [package for package in packages if "skip_reason" not in package]
    weak = [package for package in compared if package.get("vulns")]
    said = []
    for package in weak:
        ids = ", ".join(found["id"] for found in package["vulns"])
        fixed = sorted({version for found in package["vulns"] for version in found.get("fix_versions", ())})
        said.append(f"{package['name']} {package.get('version')}: {ids}; fixed in: {', '.join(fixed) or 'none yet'}")
    if not compared:
        said.append(
            f"pip-audit: NOT DONE: its database cannot be reached; none of {len(packages)} packages was compared"
        )
    else:
        said.append(
            f"pip-audit: {len(weak)} of {len(compared)} packages have a known weakness; {len(packages)} installed"
        )
    return said, 1 if weak else 0


def main() -> int:
    try:
        ran = subprocess.run(COMMAND, capture_output=True, text=True, timeout=300, check=False)
        packages = json.loads(ran.stdout)["dependencies"]
    except (ValueError, KeyError, subprocess.TimeoutExpired) as error:
        print(f"pip-audit: NOT DONE: it gave no answer ({type(error).__name__}); nothing was compared")
        return 0
    said, code = verdict(packages)
    print("\n".join(said))
    return code


if __name__ == "__main__":
    sys.exit(main())

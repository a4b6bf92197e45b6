"""A full disk and a read-only folder give clear errors.

As root a small file system in memory is mounted and filled; elsewhere the process is given a limit on the size of its
files, and the folder's permissions are taken away. Which of the two it was is told.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import trivet
from crash.crew import WORDS_ALONE, found_by
from robust.account import Account, Scale
from trivet.errors import StoreError, TrivetError

SIZES = (1_200_000, 6_000_000)  # bytes of a disk that is filled: from hardly a store to some indexes
PATIENCE = 120.0


def run(account: Account, scale: Scale, folder: Path, rng: random.Random) -> None:
    mounts = _can_mount(folder / "probe")
    account.note(f"disk full by {'a small tmpfs' if mounts else 'RLIMIT_FSIZE'}")
    for number in range(scale.fillings):
        place = folder / f"disk-{number}"
        size = rng.randrange(*SIZES)
        with mounted(place, size) if mounts else contextlib.nullcontext():
            place.mkdir(exist_ok=True)
            _fill(account, place, 0 if mounts else size, rng.randrange(1 << 30))
        account.add("full disks")
    place = folder / "read-only"
    with mounted(place, 30_000_000) if mounts else contextlib.nullcontext():
        place.mkdir(exist_ok=True)
        _read_only(account, place, mounts)
    account.add("read-only places")


# --- a full disk ------------------------------------------------------------------------------------------------------


def _fill(account: Account, place: Path, limit: int, seed: int) -> None:
    command = [sys.executable, "-m", "robust.places", str(place), str(limit), str(seed)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        account.fault("hung", f"on a full disk, seed {seed}")
        return
    for line in ran.stdout.splitlines():
        kind, told = json.loads(line)
        account.fault(kind, f"on a full disk (limit {limit}, seed {seed}): {told}")
    if ran.returncode:
        account.fault("crashed", f"on a full disk (limit {limit}, seed {seed}): {ran.stderr[-1500:]}")


def fill(place: Path, limit: int, seed: int) -> Iterator[tuple[str, str]]:
    """Write until there is no room; nothing that was acknowledged goes, and with room again all goes on."""
    rng, store = random.Random(seed), place / "memory.db"
    spare = place / "spare"
    kept: dict[str, str] = {}
    if limit:
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit // 2, resource.RLIM_INFINITY))
    else:
        room = os.statvfs(place)
        spare.write_bytes(bytes(room.f_bavail * room.f_frsize * 2 // 5))
    try:
        engine = trivet.open(store, embedder="hashing:64")
    except StoreError:
        return  # not even room for an empty store, and it says so
    refused = 0
    with engine:
        for number in range(100_000):
            text = f"zz{number}zq " + " ".join(f"{rng.getrandbits(40):x}" for _ in range(rng.choice((5, 50, 2000))))
            try:
                engine.add(text, id=f"d{number}")
                kept[f"d{number}"] = text
            except StoreError as error:
                refused += 1
                if "full" not in str(error) and "disk" not in str(error):
                    yield "wrong", f"the message does not name the disk: {error}"
            if refused >= 3:
                break
            if number % 10 == 9:
                with contextlib.suppress(TrivetError):
                    engine.search(f"zz{number}zq")
        yield from _looked(engine, kept, "while full")
    with trivet.open(store) as engine:
        yield from _looked(engine, kept, "opened while full")
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    else:
        spare.unlink()
    with trivet.open(store) as engine:
        engine.add("zzagainzq there is room", id="again")
        kept["again"] = "zzagainzq there is room"
        yield from _looked(engine, kept, "with room again")
        for problem in engine.verify().problems:
            yield "wrong", problem
    if not refused:
        yield "wrong", "the disk never became full: this checks nothing"


def _looked(engine: trivet.Engine, kept: dict[str, str], when: str) -> Iterator[tuple[str, str]]:
    stored = {document.id: document.text for document in engine.documents()}
    for id in kept.keys() - stored.keys():
        yield "lost", f"{when}: {id}"
    for id in stored.keys() - kept.keys():
        yield "strange", f"{when}: {id} was refused and is there"
    for id, text in list(kept.items())[-5:]:
        if stored.get(id) != text or found_by(engine, text.split()[0], WORDS_ALONE) != [id]:
            yield "wrong", f"{when}: {id} is not found"


# --- a read-only place ------------------------------------------------------------------------------------------------


def _read_only(account: Account, place: Path, mounts: bool) -> None:
    store = place / "memory.db"
    with trivet.open(store, embedder="hashing:64") as engine:
        for number in range(20):
            engine.add(f"zz{number}zq by the quay", id=f"d{number}")
        engine.rebuild()
    with _without_writing(place, mounts):
        with trivet.open(store) as engine:
            for number in range(20):
                if found_by(engine, f"zz{number}zq", WORDS_ALONE) != [f"d{number}"]:
                    account.fault("wrong", f"d{number} is not found in a read-only folder")
            for problem in engine.verify().problems:
                account.fault("wrong", f"in a read-only folder: {problem}")
            for deed in (
                lambda: engine.add("new"),
                lambda: engine.delete("d1"),
                lambda: engine.update_settings(k=3),
                lambda: engine.feedback("quay", "d1"),
                lambda: engine.backup(place / "copy.db"),
            ):
                try:
                    deed()
                    account.fault("silent", "a write in a read-only folder was not refused")
                except StoreError:
                    pass
            results = engine.search("quay", touch=True)
            if [item.part for item in results.degraded] != ["touch"]:
                account.fault("silent", f"an access that cannot be counted is not told: {results.degraded}")
        try:
            trivet.open(place / "other.db").close()
            account.fault("silent", "a store was made in a read-only folder")
        except StoreError:
            pass


@contextlib.contextmanager
def _without_writing(place: Path, mounts: bool) -> Iterator[None]:
    if mounts:
        _run("mount", "-o", "remount,ro", str(place))
    else:
        place.chmod(0o500)
        (place / "memory.db").chmod(0o400)
    try:
        yield
    finally:
        if mounts:
            _run("mount", "-o", "remount,rw", str(place))
        else:
            place.chmod(0o700)


# --- mounting ---------------------------------------------------------------------------------------------------------


def _can_mount(place: Path) -> bool:
    if os.geteuid() != 0:
        return False
    try:
        with mounted(place, 1_000_000):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextlib.contextmanager
def mounted(place: Path, size: int) -> Iterator[None]:
    place.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place))
    try:
        yield
    finally:
        _run("umount", "-l", str(place))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    for found in fill(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])):
        print(json.dumps(found), flush=True)

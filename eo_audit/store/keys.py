"""The keys of the hashes: one for each warehouse, in the user's own configuration folder, never beside the tables.

Keys and payloads of records are stored as keyed hashes only. Whoever has the key can try guesses (all order numbers, all customers) until
the hashes agree; whoever has the tables alone cannot. So the folder that is queried, copied and mailed holds a name, not a secret; the
secret is `$XDG_CONFIG_HOME/eo-audit/keys/NAME` (`~/.config/...`), for its owner only; the driver hands it to tasks.

Without the key nothing is wrong, but less is seen: a payload sent again is recognised only among dumps that were read under one key.
"""

import os
import secrets
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

from eo_audit.errors import ConfigurationError, WarehouseError

# 128 bits: nobody tries keys instead of guesses.
KEY_BYTES = 16
KEY_FILE = "EO_AUDIT_KEY_FILE"
NAME = "_name"
OLD_SALT = "_salt"  # where earlier releases kept the key


class Keys:
    """Where keys are kept and taken from."""

    def __init__(self, *, forget: bool = False, notice: Callable[[str], object] = str) -> None:
        """Nothing is read or made yet.

        Args:
            forget: throw the key away after the run.
            notice: hears what the user should know.
        """
        self.forget = forget
        self._notice = notice
        self._in_memory: bytes | None = None

    def key(self, folder: Path, *, used: bool) -> bytes:
        """The key of a warehouse, made when it is first needed.

        Args:
            folder: the warehouse.
            used: there are hashes in its tables already.

        Raises:
            ConfigurationError: the key cannot be kept, or is no key.
        """
        if KEY_FILE in os.environ:
            return _whole(Path(os.environ[KEY_FILE]))
        if self._in_memory is not None:
            return self._in_memory
        path = _place(folder)
        if not path.is_file():
            if used:
                self._notice(f"the key of the hashes in {folder} is not in {path.parent}: from now on there is a new one, {_SEEN_LESS}")
            self._keep(path, secrets.token_bytes(KEY_BYTES))
        return self._in_memory if self._in_memory is not None else _whole(path)

    def move_in(self, folder: Path, *, used: bool) -> None:
        """Take the key of an earlier release out of a warehouse.

        Args:
            folder: the warehouse.
            used: there are hashes in its tables already.

        Raises:
            WarehouseError: it is no key, so anyone can try guesses of what it has hashed.
        """
        old = folder / OLD_SALT
        if not old.exists():
            return
        key = old.read_bytes()
        if len(key) == KEY_BYTES:
            self._keep(_place(folder), key)
        elif used:
            todo = f"remove {folder} and run `eo-audit run DUMPS --out {folder.parent}` with all dumps"
            raise WarehouseError(f"{old} holds {len(key)} bytes instead of a key, so the hashes beside it can be guessed: {todo}")
        old.unlink()

    def throw_away(self, folder: Path) -> None:
        """Forget the key of a warehouse, if that was asked for."""
        if self.forget:
            self._in_memory = None
            if (folder / NAME).is_file():
                _place(folder).unlink(missing_ok=True)

    def _keep(self, path: Path, key: bytes) -> None:
        if self.forget:
            self._in_memory = key
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_whole(path, key)
        except OSError as error:
            todo = f"set XDG_CONFIG_HOME or {KEY_FILE}, or use --forget-key"
            raise ConfigurationError(f"the key of the hashes cannot be kept in {path.parent} ({error.strerror}): {todo}") from error


_SEEN_LESS = "and a payload that was sent again is recognised only among dumps that are read under one key"


def _place(folder: Path) -> Path:
    """Where the key of a warehouse is: under the name of the warehouse, which is made with it."""
    name = folder / NAME
    if not name.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _write_whole(name, f"{uuid.uuid4().hex}\n".encode())
    told = name.read_text(encoding="ascii", errors="replace").strip()
    # The name becomes a path: one that somebody changed could lead out of the folder of keys.
    if len(told) != 32 or not told.isalnum() or not told.isascii():
        raise WarehouseError(f"{name} is damaged: remove it; {_SEEN_LESS}")
    return _configuration() / "eo-audit" / "keys" / told


def _configuration() -> Path:
    named = os.environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(named):  # the specification wants others ignored
        return Path(named)
    try:
        return Path.home() / ".config"
    except RuntimeError:
        raise ConfigurationError(f"there is no home folder to keep the key of the hashes in: set {KEY_FILE}, or use --forget-key") from None


def _write_whole(path: Path, content: bytes) -> None:
    """Write aside and link: a file is there whole or not at all, and the first of two writers wins."""
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=f"_{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            # The hashes that follow can be made with no other key: it must outlive a power cut that they outlive.
            os.fsync(file.fileno())
        try:
            os.link(aside, path)
        except FileExistsError:
            return
        except OSError:  # a file system without hard links; the caller holds the lock of the warehouse
            os.replace(aside, path)
            return
    finally:
        Path(aside).unlink(missing_ok=True)


def _whole(path: Path) -> bytes:
    try:
        key = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"the key of the hashes {path} cannot be read: {error.strerror}") from error
    if len(key) != KEY_BYTES:
        made = f"`head -c {KEY_BYTES} /dev/urandom > {path}` makes one"
        raise ConfigurationError(f"{path} is no key of hashes: it has {len(key)} bytes, not {KEY_BYTES}; {made}, {_SEEN_LESS}")
    return key

"""The text of a gzip file, as far as it can be unpacked: the same bytes however they are asked for."""

import zlib
from collections.abc import Iterator
from io import BufferedReader, FileIO, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING

from eo_audit.dump.files.not_dumps import NotADump

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PACKED_BYTES = 64 << 10
_LAST_BYTES = 64  # a step of the way to where the damage shows
# What one step unpacks at most: a file of zeros grows a thousand times.
_UNPACKED_BYTES = 1 << 20
_GZIP = 31  # zlib: with the header and the checksum of gzip
_PADDING = b"\0"  # tapes and block devices fill up what they hold


class Unpacked(RawIOBase):
    """One or more gzip members in a row. A file that is cut ends there, as a plain one would; one that is damaged ends where that shows.

    Attributes:
        damage: what was wrong, once all that can be read was read; None for a file that is whole or was cut.
    """

    def __init__(self, path: Path) -> None:
        """Open a file."""
        super().__init__()
        self.damage: str | None = None
        self._file = FileIO(path)
        self._pieces = self._unpack()
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """It is read from its start to its end."""
        return True

    def readinto(self, into: "WriteableBuffer") -> int:
        """Some bytes more; none at the end."""
        while not self._ready:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._ready = memoryview(piece)
        room = memoryview(into).cast("B")
        taken = min(len(room), len(self._ready))
        room[:taken] = self._ready[:taken]
        self._ready = self._ready[taken:]
        return taken

    def close(self) -> None:
        """Close the file, too."""
        self._file.close()
        super().close()

    def _unpack(self) -> Iterator[bytes]:
        packed = self._file.read(_PACKED_BYTES)
        while packed:
            member = zlib.decompressobj(wbits=_GZIP)
            while packed and not member.eof:
                before = member.copy()
                try:
                    piece = member.decompress(packed, _UNPACKED_BYTES)
                except zlib.error as error:
                    self.damage = str(error)
                    yield from _as_far_as_it_goes(before, packed)
                    return
                yield piece
                packed = member.unconsumed_tail or (b"" if member.eof else self._file.read(_PACKED_BYTES))
            packed = self._behind(member.unused_data)

    def _behind(self, packed: bytes) -> bytes:
        """What stands behind a member, without padding."""
        while not (packed := packed.lstrip(_PADDING)):
            packed = self._file.read(_PACKED_BYTES)
            if not packed:
                break
        return packed


def beginning(path: Path, size: int) -> bytes:
    """How the text of a gzip file begins; one that is damaged further on is read up to there.

    Raises:
        NotADump: nothing of it can be unpacked.
    """
    unpacked = Unpacked(path)
    with BufferedReader(unpacked, size) as file:
        head = file.read(size)
    if unpacked.damage and not head:
        raise NotADump("begins like gzip but cannot be unpacked")
    return head


def _as_far_as_it_goes(member: "zlib._Decompress", packed: bytes) -> Iterator[bytes]:
    """What comes out in front of the damage: a step that meets it gives nothing."""
    for at in range(0, len(packed), _LAST_BYTES):
        try:
            yield member.decompress(packed[at : at + _LAST_BYTES])
        except zlib.error:
            return

"""What the records of all topic decoders share: one line each, that ends where their own grammar does, and text that stands for itself."""

from codecs import utf_8_decode

import numpy as np

from eo_audit.dump.fast.fields import Dialect, LineColumns
from eo_audit.dump.fast.lines import NO_SPAN, RecordColumns, read_markers
from eo_audit.dump.lines.printed import longest_printed
from eo_audit.dump.lines.scan import Bits, Ints, Octets

LONG, INT, SHORT = (19, 63), (10, 31), (5, 15)  # most digits and bits of Kafka's int64, int32 and int16
TOMBSTONE = b"<DELETE>\n"
_NOT_ASCII, _REPLACEMENT = 0x80, "\ufffd".encode()
_LOOKAHEAD = 512  # bytes behind the longest text of a name that `decoders` and `offsets_decoder` look at: their 320, and some


def standing(text: Octets, character: bytes) -> Ints:
    """Where a character stands."""
    return np.flatnonzero(text.bytes[: text.size] == ord(character))


def first_behind(places: Ints, at: Ints, size: int) -> Ints:
    """The first of some places at or behind each offset; `size` where there is none."""
    found: Ints = np.append(places, size)[np.searchsorted(places, at)]
    return found


def line_ends(text: Octets, starts: Ints) -> Ints:
    """The line feed that ends each line; the size of the text where there is none."""
    return first_behind(standing(text, b"\n"), starts, text.size)


def decoded_records(text: Octets, heads: LineColumns, line_end: Ints, fits: Bits, dialect: Dialect, *, json: bool) -> RecordColumns:
    """Record lines, of which some fit their decoder's grammar up to the line end; others may be markers.

    Args:
        text: the stretch.
        heads: what stands before their header keys.
        line_end: the line feed behind each.
        fits: what the decoder printed has the form that is known.
        dialect: of the lines.
        json: the decoder prints JSON.
    """
    plain = fits & _is_itself(text, heads, line_end, json=json)
    nowhere, none = np.full(len(plain), NO_SPAN, dtype=np.int64), np.zeros(len(plain), dtype=np.int64)
    end = line_end + 1
    marks, marker, epoch = read_markers(text, heads.end + 1, heads.ok & ~plain & (text.byte(heads.end) == ord("]")), dialect, end)
    # Their keys and payloads are no text that could be hashed.
    return RecordColumns(heads, none, nowhere, nowhere, end, plain, marks, marker, epoch)


def _is_itself(text: Octets, heads: LineColumns, line_end: Ints, *, json: bool) -> Bits:
    """Records whose text stands for just the bytes it has, as far as a decoder would look for another end of a name if it did not."""
    odd = _odd(text, json=json)
    reach = line_end + longest_printed(1) * np.maximum(heads.numbers["key_size"], 0) + _LOOKAHEAD
    itself: Bits = (reach <= text.size) & (np.searchsorted(odd, heads.start) == np.searchsorted(odd, reach))
    return itself


def _odd(text: Octets, *, json: bool) -> Ints:
    """Where characters stand that may be others than they look (`printed`), or that begin an escape of JSON."""
    content = text.bytes[: text.size]
    odd = ((content < ord(" ")) & (content != ord("\n"))) | (content == ord("?"))
    if json:
        odd |= content == ord("\\")
    high = content >= _NOT_ASCII
    if high.any():
        # U+FFFD is what is printed for bytes that are no UTF-8; damage may have left such bytes themselves.
        replaced = np.flatnonzero(content == _REPLACEMENT[0])
        odd[replaced[text.stands(_REPLACEMENT, replaced)]] = True
        odd |= high & (not _is_utf8(content.tobytes()))
    return np.flatnonzero(odd)


def _is_utf8(content: bytes) -> bool:
    try:
        utf_8_decode(content)  # a last character that is cut is no fault
    except UnicodeDecodeError:
        return False
    return True

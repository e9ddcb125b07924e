"""Records of `__cluster_metadata` as `--cluster-metadata-decoder` prints them: no key, and JSON on one line.

Of all of them one is a fact of ours: `ProducerIdsRecord`, by which the controller gives a broker a block of producer ids
(`ProducerIdControlManager.generateNextProducerId`). All ids below its `nextProducerId` have been given out, and none above.
"""

import json
import re
from collections.abc import Iterator

from eo_audit.dump.lines.decoders import Decoded, Fields
from eo_audit.dump.lines.json_record import json_number, json_object
from eo_audit.dump.lines.printed import INT

JSON_DECODER = "json"
_JSON_LINE = re.compile(rb" payload: (\{[^\n]*\})\r?\n")
_PRODUCER_IDS = b'{"type":"PRODUCER_IDS_RECORD",'
# Version 0: 3 bytes of the record's frame (`AbstractApiMessageSerde`), broker id, broker epoch, next producer id, no tagged fields.
_SIZE_V0 = 3 + 4 + 8 + 8 + 1


def metadata_records(dump: bytes, start: int, *, key_size: int, value_size: int) -> Iterator[Decoded]:
    """The reading of a record of the cluster's metadata log; none where it is no such record. Arguments as for `coordinator_records`."""
    found = _JSON_LINE.match(dump, start) if key_size < 0 <= value_size else None
    if found:
        yield Decoded(found.end(), JSON_DECODER, _block(found[1]) if value_size == _SIZE_V0 else None)


def _block(printed: bytes) -> Fields | None:
    # The metadata log has a record for each topic, partition and setting: they are not parsed to learn that they are no block.
    if not printed.startswith(_PRODUCER_IDS):
        return None
    try:
        data = json_object(json.loads(printed), "data")
        broker, epoch = json_number(data, "brokerId", bits=INT), json_number(data, "brokerEpoch")
        next_id = json_number(data, "nextProducerId")
    except (ValueError, AttributeError, RecursionError):
        return None
    if broker is None or epoch is None or next_id is None:
        return None
    return {"broker_id": broker, "broker_epoch": epoch, "next_producer_id": next_id}

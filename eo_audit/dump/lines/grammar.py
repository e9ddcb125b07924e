"""The lines that `kafka-dump-log` prints of a log segment, once: names, kinds of values, releases, and the columns of the facts; and
those that the formatters of a console consumer print of Kafka's own topics.

Both readers, the columns of the facts and the tables of docs/dialects.md are made of these lines. A field that a new release prints is one
line here, and its column in `schemas/` where it is kept. How the records of a batch and the text of a record are delimited is the
readers' own matter.
"""

from eo_audit.dump.lines.fields import (
    Digit,
    Field,
    Fixed,
    Flag,
    Kind,
    Line,
    Number,
    OneOf,
    OptionalNumber,
    Part,
    Stamp,
    Wording,
    Words,
    assigned,
)

LONG, INT, SHORT = Number("long", 19, 63), Number("int", 10, 31), Number("short", 5, 15)
PLACE, SIZE, CRC = Number("long", 19, 63, signed=False), Number("int", 10, 31, signed=False), Number("unsigned int", 10, 32, signed=False)
FLAG = Flag()
CODEC = Words("none", "gzip", "snappy", "lz4", "zstd", upper=True)
TIMESTAMP_TYPES = Words("CreateTime", "LogAppendTime", "NoTimestampType")
HEADER_KEYS = Field("headerKeys", Fixed("["))
_STRAY = Kind("unsigned int, with a stray `}` behind it up to 4.2", rb"%s\}?" % CRC.pattern, CRC.longest + 1)
_LINE_END = rb"\r?(?=\n|\Z)"

# DumpLogSegments.printBatchLevel, magic 2, from 2.2 on; `deleteHorizonMs` came with KIP-534.
BATCH = Line(
    Field("baseOffset", LONG, "base_offset"),
    Field("lastOffset", LONG, "last_offset"),
    Field("count", INT, "count"),
    Field("baseSequence", INT, "base_sequence"),
    Field("lastSequence", INT, "last_sequence"),
    Field("producerId", LONG, "producer_id"),
    Field("producerEpoch", SHORT, "producer_epoch"),
    Field("partitionLeaderEpoch", INT, "partition_leader_epoch"),
    Field("isTransactional", FLAG, "is_transactional"),
    Field("isControl", FLAG, "is_control"),
    Part("3.2 and later", (Field("deleteHorizonMs", OptionalNumber(LONG), "delete_horizon_ms"),)),
    Field("position", PLACE, "position"),
    Stamp(TIMESTAMP_TYPES, LONG, "max_timestamp_ms", "timestamp_type"),
    Field("size", SIZE, "size_bytes"),
    Field("magic", Digit(2, 9), "magic"),
    Field("compresscodec", CODEC, "codec"),
    Field("crc", CRC, "crc"),
    Field("isvalid", FLAG, "crc_valid"),
    behind=_LINE_END,
)
# Magic 0 and 1: what was converted, or written before 0.11, and still lies on a disk. Its one offset is the last.
LEGACY_BATCH = Line(
    Field("offset", LONG, "last_offset"),
    Field("position", PLACE, "position"),
    Stamp(TIMESTAMP_TYPES, LONG, "max_timestamp_ms", "timestamp_type"),
    Field("size", SIZE, "size_bytes"),
    Field("magic", Digit(0, 1), "magic"),
    Field("compresscodec", CODEC, "codec"),
    Field("crc", CRC, "crc"),
    Field("isvalid", FLAG, "crc_valid"),
    behind=_LINE_END,
)
# 2.8 repeated the batch in each record line, and 3.0 took that back.
RECORD = Line(
    Field("| offset", LONG, "offset"),
    Part(
        "2.8",
        (
            Field("isValid", FLAG),
            Field("crc", Kind("unsigned int or `null`", rb"(?:null|%s)" % CRC.pattern, CRC.longest)),
            Field("keySize", INT, "key_size"),
            Field("valueSize", INT, "value_size"),
        ),
    ),
    Stamp(TIMESTAMP_TYPES, LONG, "timestamp_ms"),
    Part(
        "2.8",
        (
            Field("baseOffset", LONG),
            Field("lastOffset", LONG),
            Field("baseSequence", INT),
            Field("lastSequence", INT),
            Field("producerEpoch", SHORT),
            Field("partitionLeaderEpoch", INT),
            Field("batchSize", SIZE),
            Field("magic", Digit(0, 9)),
            Field("compressType", Kind("a word", rb"\w{1,8}", 8)),
            Field("position", PLACE),
        ),
    ),
    Part(
        "2.2 to 2.7, 3.0 and later",
        (Field("keySize", INT, "key_size", old="keysize"), Field("valueSize", INT, "value_size", old="valuesize")),
    ),
    OneOf(
        (
            Part("magic 2", (Field("sequence", INT, "sequence"), HEADER_KEYS)),
            Part("magic 0 and 1, up to 2.8", (Field("crc", CRC), Field("isvalid", FLAG))),
            Part("magic 0 and 1, 3.0 and later", (Field("isValid", FLAG), Field("crc", _STRAY))),
        )
    ),
)
# DumpLogSegments.dumpLog, up to 2.1, with --deep-iteration: `isvalid` is the record's own.
FLAT_RECORD = Line(
    Field("offset", LONG, "offset"),
    Field("position", PLACE, "position"),
    Stamp(TIMESTAMP_TYPES, LONG, "timestamp_ms", "timestamp_type"),
    Field("isvalid", FLAG, "crc_valid"),
    Field("keysize", INT, "key_size"),
    Field("valuesize", INT, "value_size"),
    Field("magic", Digit(0, 2), "magic"),
    Field("compresscodec", CODEC, "codec"),
    OneOf(
        (
            Part(
                "magic 2",
                (
                    Field("producerId", LONG, "producer_id"),
                    Part("0.11.0.2 and later", (Field("producerEpoch", SHORT, "producer_epoch"),)),
                    Field("sequence", INT, "sequence"),
                    Field("isTransactional", FLAG, "is_transactional"),
                    HEADER_KEYS,
                ),
            ),
            Part("magic 0 and 1", (Field("crc", CRC),)),
        )
    ),
)
# The same, without --deep-iteration.
FLAT_BATCH = Line(
    Field("baseOffset", LONG, "base_offset"),
    Field("lastOffset", LONG, "last_offset"),
    Part("2.0 and later", (Field("count", INT, "count"),)),
    Field("baseSequence", INT, "base_sequence"),
    Field("lastSequence", INT, "last_sequence"),
    Field("producerId", LONG, "producer_id"),
    Field("producerEpoch", SHORT, "producer_epoch"),
    Field("partitionLeaderEpoch", INT, "partition_leader_epoch"),
    Field("isTransactional", FLAG, "is_transactional"),
    Part("2.0 and later", (Field("isControl", FLAG, "is_control"),)),
    Field("position", PLACE, "position"),
    Stamp(TIMESTAMP_TYPES, LONG, "max_timestamp_ms", "timestamp_type"),
    Field("isvalid", FLAG, "crc_valid"),
    Field("size", SIZE, "size_bytes"),
    Field("magic", Digit(2, 2), "magic"),
    Field("compresscodec", CODEC, "codec"),
    Field("crc", CRC, "crc"),
    behind=_LINE_END,
)

# TransactionMetadata.toString, behind the id that TransactionLog.TransactionLogMessageFormatter prints, 0.11 to 3.9.
_STATE = Kind("a word", rb"[A-Z][A-Za-z]{2,30}", 31)
CONSOLE_TRANSACTION = Wording(
    *assigned(
        Field("producerId", LONG, "producer_id"),
        Field("producerEpoch", SHORT, "producer_epoch"),
        Field("txnTimeoutMs", INT, "timeout_ms"),
        Field("state", _STATE, "status"),
        Field("pendingState", Kind("`None` or `Some(..)`", rb"(?:None|Some\(\w{1,31}\))", 40)),
        Field("topicPartitions", Kind("`Set(a-0, b-1)` or `HashSet(..)`", rb"(?:Hash)?Set\([\w., -]*\)", 1 << 20), "partitions"),
        Field("txnStartTimestamp", LONG, "start_ms"),
        Field("txnLastUpdateTimestamp", LONG, "last_update_ms"),
    ),
    behind=rb"\)\r?\n",
)
# OffsetAndMetadata.toString, behind the key that GroupMetadataManager.OffsetsMessageFormatter prints: since 2.1, and before. What a client
# commits beside an offset is raw: it may be all of this again.
MOST_METADATA = 64 << 10
_RAW = Kind("what the client committed beside it, raw", rb"(?s:.{0,%d}?)" % MOST_METADATA, MOST_METADATA)
CONSOLE_COMMIT = Wording(
    *assigned(
        Field("offset", LONG, "committed_offset"),
        Field("leaderEpoch", Kind("`Optional[12]` or `Optional.empty`", rb"Optional(?:\.empty|\[-?\d{1,10}\])", 21)),
        Field("metadata", _RAW),
        Field("commitTimestamp", LONG, "commit_timestamp_ms"),
        Field("expireTimestamp", Kind("`Some(12)` or `None`", rb"(?:None|Some\(-?\d{1,19}\))", 26)),
    ),
    behind=rb"\)\r?\n",
)
CONSOLE_COMMIT_2_0 = Wording(
    *(Field("OffsetMetadata", LONG, "committed_offset"), ",", Field("metadata", _RAW), "],CommitTime "),
    *(Field("CommitTime", LONG, "commit_timestamp_ms"), ",ExpirationTime ", Field("ExpirationTime", LONG)),
    behind=rb"\]\r?\n",
)

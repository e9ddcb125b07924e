#!/bin/sh
# Collects what eo-audit reads, on a Kafka broker: dumps of segments, producer snapshots and transaction indexes, checkpoints,
# a listing and a manifest. It only reads; it runs at the lowest priority; it never overwrites.
set -eu
umask 077 # dumps hold keys, and payloads unless --no-payloads

usage() {
  cat <<'USAGE'
Usage: collect-dumps.sh --out DIR (--config server.properties | --log-dir DIR ...) [options] [TOPIC | TOPIC-PARTITION ...]

Writes DIR/manifest.yaml and DIR/broker-N/... for `eo-audit run DIR`. Without topics: every partition of this broker.
With topics: those, and always __transaction_state and __consumer_offsets (they say who decided what).
__cluster_metadata only when asked for; no internal topic is ever printed with its payloads.
Run it on every broker that holds a replica, each into the same DIR or into copies that are put together afterwards.

  --out DIR            where to write; DIR/broker-N must not exist
  --config FILE        the broker's server.properties: log directories and settings are taken from it
  --log-dir DIR        a log directory (repeat for more); instead of --config, or when it names others
  --broker N           broker id, where meta.properties does not tell
  --cluster NAME       name of the cluster in every finding (default: the cluster id in meta.properties)
  --kafka-dump-log CMD the dump tool (default: kafka-dump-log.sh or kafka-dump-log on the PATH or in $KAFKA_HOME/bin)
  --no-payloads        keys and payloads of your topics are not printed (the same record sent by two producers cannot be seen then)
  --gzip               compress the dumps while they are written
  --help               this text

Exit code: 0 all dumped; 1 the tool failed on some files (named at the end; keep their .err.txt); 2 nothing done, bad arguments.
USAGE
}

fail() {
  echo "collect-dumps.sh: $*" >&2
  exit 2
}

# property NAME FILE: the value of a Java property, empty where there is none
property() {
  sed -n "s/^[[:space:]]*$(printf '%s' "$1" | sed 's/\./\\./g')[[:space:]]*[=:][[:space:]]*//p" "$2" | tr -d '\r' | tail -n 1
}

find_tool() {
  for name in kafka-dump-log.sh kafka-dump-log "${KAFKA_HOME:-/opt/kafka}/bin/kafka-dump-log.sh" "${KAFKA_HOME:-/opt/kafka}/bin/kafka-dump-log"; do
    if command -v "$name" >/dev/null 2>&1; then
      echo "$name"
      return
    fi
  done
}

# wanted TOPIC-PARTITION: is it asked for?
wanted() {
  case "${1%-*}" in __transaction_state | __consumer_offsets) return 0 ;; esac
  case "$asked" in
    '') case "$1" in __cluster_metadata-*) return 1 ;; *) return 0 ;; esac ;;
    *"|$1|"* | *"|${1%-*}|"*) return 0 ;;
    *) return 1 ;;
  esac
}

# flags TOPIC-PARTITION: what the tool is told for its segments
flags() {
  case "${1%-*}" in
    __transaction_state) echo "--transaction-log-decoder --deep-iteration" ;;
    __consumer_offsets) echo "--offsets-decoder --deep-iteration" ;;
    __*) echo "--deep-iteration" ;; # internal topics may hold credentials
    *) echo "--deep-iteration$payloads" ;;
  esac
}

gently() {
  if $idle_disk; then ionice -c 3 nice -n 19 "$@"; else nice -n 19 "$@"; fi
}

# dump SOURCE TARGET FLAGS...: one file of the log directory, one file of text; what the tool says goes to .err.txt
dump() {
  source=$1 target=$2 said="${2%.txt}.err.txt"
  shift 2
  if $gzip; then
    { gently "$tool" "$@" --files "$source" 2>"$said" </dev/null || echo failed >"$broken"; } | gzip -c >"$target.gz"
  else
    gently "$tool" "$@" --files "$source" >"$target" 2>"$said" </dev/null || echo failed >"$broken"
  fi
  if [ -e "$broken" ]; then
    rm -f "$broken"
    failures=$((failures + 1))
    echo "  the dump tool failed on $source: see $said" >&2
  fi
  [ -s "$said" ] || rm -f "$said"
}

# copy_checkpoints LOG_DIR NAME...: two log directories of one broker have two checkpoint files; the copies are put together
copy_checkpoints() {
  from=$1
  shift
  for name in "$@"; do
    [ -f "$from/$name" ] || continue
    if [ -s "$into/$name" ] && [ -s "$from/$name" ]; then
      awk 'FNR == 1 { version = $0; next } FNR == 2 { count += $1; next } { row[++rows] = $0 }
        END { print version; print count; for (i = 1; i <= rows; i++) print row[i] }' "$into/$name" "$from/$name" >"$into/$name.new"
      mv "$into/$name.new" "$into/$name"
    elif [ ! -s "$into/$name" ]; then
      cp "$from/$name" "$into/$name" # it may be empty: nothing was written to it yet
    fi
  done
}

# list_files LOG_DIR: "<bytes> <path>", so that an index that does not exist can be told from one that was not dumped
list_files() {
  # A file may be deleted while it is listed: that is no failure.
  (
    cd "$1"
    find . -type f -exec ls -ln {} + 2>/dev/null || :
  ) |
    awk '{ bytes = $5; path = $0; sub(/^.* \.\//, "", path); print bytes, path }' | sort -k 2 >>"$into/listing.txt"
}

dump_partition() {
  partition=${1##*/}
  mkdir -p "$into/$partition"
  if [ -f "$1/leader-epoch-checkpoint" ]; then cp "$1/leader-epoch-checkpoint" "$into/$partition/"; fi
  for segment in "$1"/*.log; do
    [ -f "$segment" ] || continue
    # shellcheck disable=SC2046 # the flags are words without spaces
    dump "$segment" "$into/$partition/${segment##*/}.txt" $(flags "$partition")
  done
  for sidecar in "$1"/*.snapshot "$1"/*.txnindex; do
    [ -f "$sidecar" ] || continue
    dump "$sidecar" "$into/$partition/${sidecar##*/}.txt"
  done
}

# What the audit uses of the broker's settings; never a secret.
settings() {
  [ -n "$config" ] || return 0
  for name in transaction.max.timeout.ms transaction.state.log.num.partitions transaction.state.log.replication.factor \
    transaction.state.log.min.isr transaction.partition.verification.enable transaction.abort.timed.out.transaction.cleanup.interval.ms \
    transactional.id.expiration.ms producer.id.expiration.ms offsets.topic.num.partitions offsets.topic.replication.factor \
    log.cleaner.enable log.cleanup.policy log.retention.ms log.message.timestamp.type min.insync.replicas unclean.leader.election.enable; do
    value=$(property "$name" "$config")
    [ -z "$value" ] || printf '  "%s": "%s"\n' "$name" "$value"
  done
}

write_manifest() {
  {
    printf 'cluster: "%s"\n' "$cluster"
    printf 'dumped_at: %s\n' "$started"
    printf 'kafka_version: "%s"\n' "$("$tool" --version 2>/dev/null | sed -n 's/^\([0-9][0-9.]*[^ ]*\).*/\1/p' | head -n 1)"
    if [ -n "$config" ]; then
      value=$(property transaction.state.log.num.partitions "$config")
      [ -z "$value" ] || printf 'transaction_state_partitions: %s\n' "$value"
      value=$(property offsets.topic.num.partitions "$config")
      [ -z "$value" ] || printf 'consumer_offsets_partitions: %s\n' "$value"
      found=$(settings)
      [ -z "$found" ] || printf 'broker_config:\n%s\n' "$found"
    fi
  } >"$1"
}

out='' config='' broker='' cluster='' tool='' asked='' log_dirs='' payloads=' --print-data-log' gzip=false failures=0 dumped=0
line_end='
'
while [ $# -gt 0 ]; do
  case "$1" in
    --out | --config | --log-dir | --broker | --cluster | --kafka-dump-log)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case "$1" in
        --out) out=$2 ;;
        --config) config=$2 ;;
        --log-dir) log_dirs="${log_dirs:+$log_dirs$line_end}$2" ;;
        --broker) broker=$2 ;;
        --cluster) cluster=$2 ;;
        --kafka-dump-log) tool=$2 ;;
      esac
      shift
      ;;
    --no-payloads) payloads='' ;;
    --gzip) gzip=true ;;
    --help | -h)
      usage
      exit 0
      ;;
    -*) fail "unknown option $1 (--help lists them)" ;;
    *) asked="${asked:-|}$1|" ;;
  esac
  shift
done

[ -n "$out" ] || fail "say where to write: --out DIR"
if [ -n "$config" ]; then
  [ -r "$config" ] || fail "cannot read $config"
  if [ -z "$log_dirs" ]; then
    found=$(property log.dirs "$config")
    [ -n "$found" ] || found=$(property log.dir "$config")
    log_dirs=$(printf '%s' "$found" | tr ',' '\n' | sed 's/^ *//; s/ *$//')
  fi
fi
[ -n "$log_dirs" ] || fail "say where the logs are: --config server.properties or --log-dir DIR"
[ -n "$tool" ] || tool=$(find_tool)
[ -n "$tool" ] || fail "kafka-dump-log is not on the PATH: name it with --kafka-dump-log, or set KAFKA_HOME"
command -v "$tool" >/dev/null 2>&1 || fail "cannot run $tool"

# One log directory per line: their names may hold spaces.
while IFS= read -r log_dir; do
  [ -d "$log_dir" ] || fail "there is no log directory $log_dir"
  if [ -r "$log_dir/meta.properties" ]; then
    [ -n "$broker" ] || broker=$(property node.id "$log_dir/meta.properties")
    [ -n "$broker" ] || broker=$(property broker.id "$log_dir/meta.properties")
    [ -n "$cluster" ] || cluster=$(property cluster.id "$log_dir/meta.properties")
  fi
done <<DIRS
$log_dirs
DIRS
case "$broker" in '' | *[!0-9]*) fail "the broker id is not known: say --broker N" ;; esac
[ -n "$cluster" ] || fail "the cluster is not known: say --cluster NAME"
case "$cluster" in *[!A-Za-z0-9._-]*) fail "a cluster name has letters, digits, dots, dashes and underscores only" ;; esac

into=$out/broker-$broker
broken=$into/.failed
[ ! -e "$into" ] || fail "$into exists: nothing is overwritten"
mkdir -p "$into"

# One encoding whatever the shell's locale and the Java version. An agent or a JMX port of the broker must not start a second time.
export LC_ALL=C.UTF-8
export KAFKA_OPTS="-Dfile.encoding=UTF-8 -Dsun.stdout.encoding=UTF-8 -Dstdout.encoding=UTF-8"
export KAFKA_HEAP_OPTS="${DUMP_HEAP_OPTS:--Xmx512m}"
export KAFKA_JVM_PERFORMANCE_OPTS="-XX:+UseSerialGC"
unset JMX_PORT
idle_disk=false
if command -v ionice >/dev/null 2>&1 && ionice -c 3 true 2>/dev/null; then idle_disk=true; fi

# Before the first dump: nothing that happened earlier is missing from it.
started="$(date +%s)000"
while IFS= read -r log_dir; do
  copy_checkpoints "$log_dir" replication-offset-checkpoint log-start-offset-checkpoint recovery-point-offset-checkpoint
  list_files "$log_dir"
done <<DIRS
$log_dirs
DIRS
[ -e "$out/manifest.yaml" ] || write_manifest "$out/manifest.yaml"

# dump_partitions TURN: the coordinator's log comes last, so that on a running broker it tells of all that the other dumps show
dump_partitions() {
  while IFS= read -r log_dir; do
    for folder in "$log_dir"/*-[0-9]*; do
      name=${folder##*/}
      case "${name##*-}" in *[!0-9]*) continue ;; esac
      case "$name" in __transaction_state-*) turn=last ;; __consumer_offsets-*) turn=second ;; *) turn=first ;; esac
      if [ "$turn" = "$1" ] && [ -d "$folder" ] && wanted "$name"; then
        echo "$name"
        dumped=$((dumped + 1))
        dump_partition "$folder"
      fi
    done
  done <<DIRS
$log_dirs
DIRS
}

dump_partitions first
dump_partitions second
dump_partitions last
# After the last dump: the cleaner may have gone on until then.
while IFS= read -r log_dir; do
  copy_checkpoints "$log_dir" cleaner-offset-checkpoint
done <<DIRS
$log_dirs
DIRS
[ "$dumped" -gt 0 ] || echo "No partition of $asked is on this broker." >&2
echo "Dumped to $into; audit it with: eo-audit run '$out'"
if [ "$failures" -gt 0 ]; then
  echo "The dump tool failed on $failures file(s); what it printed until then is kept." >&2
  exit 1
fi

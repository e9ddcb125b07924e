#!/bin/sh
# Collects what eo-audit reads, on a Kafka broker: dumps of segments, producer snapshots and transaction indexes, checkpoints,
# listings, dump times and a manifest. It only reads; it runs at the lowest priority; it never overwrites.
set -eu
umask 077 # dumps hold header keys and transactional ids, with --payloads keys and values too

usage() {
  cat <<'USAGE'
Usage: collect-dumps.sh --out DIR (--config server.properties | --log-dir DIR ...) [options] [TOPIC | TOPIC-PARTITION ...]

Writes DIR/broker-N/... for `eo-audit run DIR`. Without topics: every partition of this broker.
With topics: those, and always __transaction_state and __consumer_offsets (they say who decided what).
__cluster_metadata (I03, I04: producer ids given out twice) only when asked for, on one broker: all hold the same. Of its records only the
blocks of producer ids are printed; of other internal topics no payload ever.
Run it on every broker that holds a replica, each into the same DIR, or put the broker-N folders together in one DIR afterwards.
Run it as a user who may read the log directories: the broker's own, or root.
A run that was interrupted leaves DIR/broker-N/unfinished.txt; the same command goes on where it stopped.

  --out DIR            where to write; DIR/broker-N must not exist, but for an unfinished one of the same command
  --config FILE        the broker's server.properties: log directories and settings are taken from it
  --log-dir DIR        a log directory (repeat for more); instead of --config, or when it names others
  --broker N           broker id, where meta.properties does not tell
  --cluster NAME       name of the cluster in every finding (default: the cluster id in meta.properties)
  --kafka-dump-log CMD the dump tool (default: kafka-dump-log.sh or kafka-dump-log on the PATH or in $KAFKA_HOME/bin)
  --payloads           print keys and values of your topics too, for what needs them (rules P12, P13, P16, I06: the same record sent again;
                       X01: keys like those of markers): twice the text and more, and what somebody wrote into a value then stands among the tool's own lines
  --gzip               compress the dumps while they are written
  --dry-run            say what would be dumped, how much text that makes and whether there is room; write nothing
  --force              begin even where the text does not seem to fit
  --help               this text

Exit code: 0 all dumped; 1 partial, and worth an audit: the tool failed on some files (named on the way; keep their .err.txt), the cleaner was
quicker than the dumps of some partitions, or this broker does not hold a topic that was named (both said at the end); 2 nothing done: bad
arguments, none of the topics named is held, no room; 3 stopped on the way: no room left, or what is said; 129, 130, 143 interrupted. After 3
and more: unfinished.
USAGE
}

fail() {
  echo "collect-dumps.sh: $*" >&2
  exit 2
}

# must_read FILE-OR-FOLDER
must_read() {
  if [ -r "$1" ] && { [ ! -d "$1" ] || [ -x "$1" ]; }; then return 0; fi
  fail "cannot read $1: run this as the user of the broker, or as root"
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

# asked_for TOPIC-PARTITION: was it named?
asked_for() {
  case "$asked" in *"|$1|"* | *"|${1%-*}|"*) return 0 ;; *) return 1 ;; esac
}

# wanted TOPIC-PARTITION: is it to be dumped?
wanted() {
  case "${1%-*}" in
    __transaction_state | __consumer_offsets) return 0 ;;
    __cluster_metadata) asked_for "$1" ;;
    *) [ -z "$asked" ] || asked_for "$1" ;;
  esac
}

# flags TOPIC-PARTITION: what the tool is told for its segments
flags() {
  case "${1%-*}" in
    __transaction_state) echo "--transaction-log-decoder --deep-iteration" ;;
    __consumer_offsets) echo "--offsets-decoder --deep-iteration" ;;
    __cluster_metadata) echo "$metadata_decoder--deep-iteration" ;;
    __*) echo "--deep-iteration" ;; # internal topics may hold credentials
    *) echo "--deep-iteration$payloads" ;;
  esac
}

# folder_of PARTITION: sets $folder, where its files lie; without a process, as this is asked some times for each file
folder_of() {
  folder=''
  IFS= read -r folder <"$at/$1" || : # the file has no line end
  [ -d "$folder" ] && return
  # A replica that is moved to another log directory of its broker (KIP-113) leaves its folder when the copy there has all of it.
  moved=$(partitions | awk -v name="$1" '$2 == name { sub(/^[^ ]+ [^ ]+ /, ""); print; exit }')
  [ -z "$moved" ] || printf '%s' "$moved" >"$at/$1"
  folder=${moved:-$folder}
}

gently() {
  if $idle_disk; then ionice -c 3 nice -n 19 "$@"; else nice -n 19 "$@"; fi
}

# text_of TARGET: standard input becomes TARGET, whole or not at all
text_of() {
  if $gzip; then gzip -c >"$work/text" && mv "$work/text" "$1.gz"; else cat >"$work/text" && mv "$work/text" "$1"; fi
}

# was_dumped PARTITION/FILE
was_dumped() {
  [ -e "$texts/$1.txt" ] || [ -e "$texts/$1.txt.gz" ]
}

# has_entries PARTITION/INDEX: of one that is not there any more the tool prints a text without entries, as of an empty one
has_entries() {
  { cat "$texts/$1.txt" 2>/dev/null || gzip -dc "$texts/$1.txt.gz" 2>/dev/null; } | grep -q '^version'
}

# keep_said DEFAULT: what the tool said, each line beside the file that it names, else the one named before, else beside DEFAULT
keep_said() {
  [ -s "$work/said" ] || return 0
  awk -v nonce="$nonce/" -v about="$1" '
    i = index($0, nonce) { about = substr($0, i + length(nonce)); sub(/[ :,].*/, "", about) }
    { print about; print }' "$work/said" |
    while IFS= read -r about && IFS= read -r line; do
      [ -d "$texts/${about%/*}" ] || about=$1
      before=${line%%"$nonce"*}
      case "$line" in
        *"$nonce"*) folder_of "${about%/*}" && printf '%s%s%s\n' "${before%"$work/"}" "$folder" "${line#*"$nonce/${about%/*}"}" ;;
        *) printf '%s\n' "$line" ;;
      esac >>"$texts/$about.err.txt"
    done
}

undecoded='' # what is dumped once more, without its decoder

# failed_on PARTITION/FILE: the tool ended there. A file that retention or the cleaner took away meanwhile is no failure.
failed_on() {
  folder_of "${1%/*}"
  # Older releases say FileNotFoundException of a file that they may not read, too.
  if [ ! -e "$folder/${1##*/}" ] || grep 'NoSuchFileException\|FileNotFoundException' "$work/said" | grep -v 'Permission denied' | grep -qF "$1"; then
    rm -f "$texts/$1.txt" "$texts/$1.txt.gz" "$texts/$1.err.txt"
    return
  fi
  case "$undecoded $1" in
    # The decoder of an old tool dies of what newer clients store (2.3: a member without an assignment); batches and markers need none.
    " __consumer_offsets-"*.log)
      if was_dumped "$1"; then # else the tool could not even begin, with or without a decoder
        echo "  the decoder of the dump tool failed on $folder/${1##*/}: dumped without it" >&2
        rm -f "$texts/$1.err.txt"
        undecoded=$1
        call_one "$1" --deep-iteration
        undecoded=''
        return
      fi
      ;;
  esac
  echo "$1" >>"$work/failed"
  echo "  the dump tool failed on $folder/${1##*/}: see $into/$1.err.txt" >&2
  case "$1" in
    # KAFKA-9293, up to 2.4.0: each id that expired leaves one.
    __transaction_state-*)
      if grep -q NullPointerException "$work/said"; then
        echo "  It dies of transactional ids that were removed: name the tool of 2.4.1 or later with --kafka-dump-log, and another --out." >&2
      fi
      ;;
  esac
}

# lend: the files named on standard input (PARTITION/FILE a line) as the tool gets them: below a folder whose name, $nonce, nobody can have
# known when the data was written. So no payload can forge the line at which its output is cut. The tool opens an index to read and *write*,
# and makes one that is not there (`TransactionIndex`): it is given copies of those, so that it writes nothing to the broker's folders, and
# may be run by somebody who could not.
lend() {
  nonce=dump-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  mkdir "$work/$nonce"
  while IFS= read -r each; do
    folder_of "${each%/*}"
    lent=$work/$nonce/${each%/*}
    case "$each" in
      *.txnindex)
        mkdir -p "$lent"
        # One that cannot be read is given as it is: the tool fails on it, and says why.
        cp "$folder/${each##*/}" "$lent/" 2>/dev/null || [ ! -e "$folder/${each##*/}" ] || ln -sf "$folder/${each##*/}" "$lent/"
        ;;
      *) [ -L "$lent" ] || ln -s "$folder" "$lent" ;;
    esac
  done
}

# without_secrets FLAGS...: of the cluster's metadata (settings, hashes of passwords) only the blocks of producer ids are kept, and of other
# records the type. What the tool could not decode may be a block: the audit takes it for text that it does not understand.
without_secrets() {
  case "$*" in
    *--cluster-metadata-decoder*)
      sed -e '/ payload: {"type":"PRODUCER_IDS_RECORD",/b' -e 's/ payload: {"type":\("[A-Z0-9_]*"\),.*/ payload: {"type":\1}/' -e t \
        -e 's/ payload: .*/ payload: not decoded/'
      ;;
    *) cat ;;
  esac
}

# told FLAGS... --files NAMES: what the tool prints of files that are lent; $work/said is what it complains about, $work/broken that it failed
told() {
  rm -f "$work/broken"
  { (cd "$work" && gently "$tool" "$@" 2>said </dev/null) || echo failed >"$work/broken"; } | without_secrets "$@"
}

# call FLAGS...: one Java process for the files in $work/call (PARTITION/FILE a line), a text for each
call() {
  lend <"$work/call"
  rm -f "$work"/part.*
  told "$@" --files "$(sed "s|^|$nonce/|" "$work/call" | paste -s -d, -)" | csplit -s -k -n 5 -f "$work/part." - "/^Dumping $nonce\//" '{*}' ||
    stop "cannot write to $into"
  last=''
  for part in "$work"/part.*; do
    IFS= read -r line <"$part" || :
    case "$line" in "Dumping $nonce/"*) ;; *) continue ;; esac # what a Java machine says before it begins
    last=${line#"Dumping $nonce/"}
    folder_of "${last%/*}"
    { printf 'Dumping %s/%s\n' "$folder" "${last##*/}" && tail -n +2 "$part"; } | text_of "$texts/$last.txt" ||
      stop "cannot write to $into"
    rm -f "$part"
  done
  read -r first <"$work/call"
  keep_said "${last:-$first}"
  rm -rf "${work:?}/$nonce"
  if [ ! -e "$work/broken" ]; then
    while IFS= read -r each; do was_dumped "$each" || echo "$each"; done <"$work/call" >"$work/rest"
    [ -s "$work/rest" ] || return 0
    # Its output cannot be cut: one by one.
    while IFS= read -r each <&4; do call_one "$each" "$@"; done 4<"$work/call"
    return
  fi
  if [ -z "$last" ]; then # it cannot even begin
    while IFS= read -r each; do failed_on "$each"; done <"$work/call"
    return
  fi
  failed_on "$last"
  awk -v last="$last" 'found { print } $0 == last { found = 1 }' "$work/call" >"$work/rest"
  mv "$work/rest" "$work/call"
  [ ! -s "$work/call" ] || call "$@"
}

# call_one PARTITION/FILE FLAGS...: the same for one file, whose text needs no cutting
call_one() {
  name=$1
  shift
  lend <<NAME
$name
NAME
  told "$@" --files "$nonce/$name" | {
    IFS= read -r line || :
    case "$line" in "Dumping $nonce/"*) line="Dumping $folder/${name##*/}" ;; esac
    [ -z "$line" ] || printf '%s\n' "$line"
    cat
  } | text_of "$texts/$name.txt" || stop "cannot write to $into"
  keep_said "$name"
  rm -rf "${work:?}/$nonce"
  [ ! -e "$work/broken" ] || failed_on "$name"
}

# call_all FLAGS...: the files in $work/names ("<bytes> PARTITION/FILE"), in calls of at most $call_files files and $call_bytes bytes
call_all() {
  awk -v files="$call_files" -v bytes="$call_bytes" -v to="$work/call-" '
    n == files || (n && sum + $1 > bytes) { n = 0; close(to number) }
    n == 0 { number = sprintf("%05d", ++calls); sum = 0 }
    { n++; sum += $1; print $2 >(to number) }' "$work/names"
  for one in "$work"/call-*; do
    [ -e "$one" ] || continue
    mv "$one" "$work/call"
    if [ "$(wc -l <"$work/call")" -eq 1 ]; then call_one "$(cat "$work/call")" "$@"; else call "$@"; fi
    [ "$(room "$into")" -gt 1024 ] || stop "no room is left at $into"
  done
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

# list_files LOG_DIR: "<bytes> <path>" of what is not dumped; what is dumped is listed behind its dump
list_files() {
  # A file may be deleted while it is listed: that is no failure. Minimal images (Red Hat's, which Confluent's are built of) have no find.
  (
    cd "$1"
    ls -lnR . 2>/dev/null || :
  ) |
    awk -v plan="$work/plan" 'BEGIN { while ((getline row <plan) > 0) { split(row, field, " "); planned[field[1]] = 1 } }
      /^\..*:$/ { folder = substr($0, 3, length($0) - 3); next }
      /^-/ && !(folder in planned) {
        bytes = $5; name = $0
        for (column = 1; column <= 8; column++) sub(/^[^ ]+ +/, "", name)
        print bytes, (folder == "" ? "" : folder "/") name
      }' \
      >>"$into/listing.txt"
}

# files_in FOLDER: "<inode> <bytes> <name>" of each file, by name, as ls sorts
files_in() {
  # shellcheck disable=SC2012 # Kafka's names hold no blanks, and find has no portable way to print an inode
  ls -lni "$1" 2>/dev/null | awk '$2 ~ /^-/ { print $1, $6, $NF }' || :
}

# begin_partition PARTITION: what stands there now; what an interrupted run dumped of it, and is still the same, is kept
begin_partition() {
  folder_of "$1"
  own=$texts/$1
  mkdir -p "$own"
  now=$(date +%s)000 # before the listing: what was appended until now lies in the files listed
  files_in "$folder" >"$own/.now"
  if [ -s "$work/failed" ]; then
    sed -n "s|^$1/||p" "$work/failed" | while IFS= read -r bad; do rm -f "$own/$bad.txt" "$own/$bad.txt.gz" "$own/$bad.err.txt"; done
    sed "\\|^$1/|d" "$work/failed" >"$work/rest"
    mv "$work/rest" "$work/failed"
  fi
  newest=$(awk '$3 ~ /^[0-9]+\.log$/ { name = $3 } END { print name }' "$own/.now")
  for text in "$own"/*.txt "$own"/*.txt.gz; do
    [ -e "$text" ] || continue
    name=${text##*/} name=${name%.gz} name=${name%.txt}
    case "$name" in
      *.err) ;;
      "$newest" | *.snapshot | *.txnindex) rm -f "$text" "$own/$name.err.txt" ;;
      # The segment that grew when it was dumped has another size now, if it has lines that its text lacks.
      *) [ "$(as_listed "$name" "$own/.before")" = "$(as_listed "$name" "$own/.now")" ] || rm -f "$text" "$own/$name.err.txt" ;;
    esac
  done
  mv "$own/.now" "$own/.before"
  [ -e "$own/.times" ] || : >"$own/.times" # of a partition that is gone when its turn comes nothing else makes it
  # Snapshots first: one that is taken while the log is read would lie beyond the end of what was read.
  awk '$3 ~ /^[0-9]+\.snapshot$/ { print $2, $3 } $3 ~ /^[0-9]+\.log$/ { log_[++logs] = $2 " " $3 } END { for (i = 1; i <= logs; i++) print log_[i] }' "$own/.before" >"$own/.names"
  while read -r bytes name; do
    was_dumped "$1/$name" && continue
    echo "$bytes $1/$name" >>"$work/names"
    echo "$now $name" >>"$own/.times"
  done <"$own/.names"
}

# as_listed NAME LISTING: its inode and its size
as_listed() {
  [ ! -e "$2" ] || awk -v name="$1" '$3 == name { print $1, $2 }' "$2"
}

# name_indexes PARTITION: indexes last, so that every abort in the dumped text is in them; those of segments that were dumped
name_indexes() {
  folder_of "$1"
  files_in "$folder" >"$texts/$1/.now"
  now=$(date +%s)000
  while read -r _ bytes name; do
    case "$name" in *.txnindex) was_dumped "$1/${name%.txnindex}.log" || continue ;; *) continue ;; esac
    echo "$bytes $1/$name" >>"$work/names"
    echo "$now $name" >>"$texts/$1/.times"
  done <"$texts/$1/.now"
}

# end_partition PARTITION: lists it again and says no where it must be dumped again, as the cleaner replaced what was being dumped
end_partition() {
  folder_of "$1"
  own=$texts/$1
  files_in "$folder" >"$own/.after"
  # A segment that was deleted before its index could be dumped is gone as a whole, and so is one that had none (no broker makes one before the
  # first abort): the listing no longer tells.
  for text in "$own"/*.log.txt "$own"/*.log.txt.gz; do
    [ -e "$text" ] || continue
    name=${text##*/} name=${name%.gz} name=${name%.log.txt}
    if [ -e "$folder/$name.log" ] || has_entries "$1/$name.txnindex"; then continue; fi
    for gone in "$name.log" "$name.txnindex"; do rm -f "$own/$gone.txt" "$own/$gone.txt.gz" "$own/$gone.err.txt"; done
  done
  for text in "$own"/*.txt "$own"/*.txt.gz; do [ ! -e "$text" ] || echo "${text##*/}"; done | sed 's/\.gz$//; s/\.txt$//' >"$own/.dumped"
  [ ! -s "$work/failed" ] || sed -n "s|^$1/||p" "$work/failed" >>"$own/.dumped"
  awk -v step=1 '
    step == 1 { inode[$3] = $1; next }
    step == 2 { dumped[$1] = 1; next }
    $3 ~ /^[0-9]+\.(log|txnindex)$/ && ($3 in inode) && (inode[$3] != $1 || ($3 ~ /log$/ && !($3 in dumped))) { again = 1 }
    $3 ~ /^[0-9]+\.log$/ { logs++ }
    END { for (name in dumped) if (name ~ /log$/) some = 1; exit again || (logs && !some) }' "$own/.before" step=2 "$own/.dumped" step=3 "$own/.after" || return 1
}

# torn PARTITION: it went on changing. Its listing is that from before, so that what is not dumped is missing; an index that may be newer than
# the text of its segment is not kept, as it may lack what the cleaner removed. A segment that others were merged into has the larger one of
# its sizes: a text that goes on behind what is listed would be believed to end there.
torn() {
  own=$texts/$1
  awk -v step=1 'step == 1 { inode[$3] = $1; next } $3 ~ /log$/ && inode[$3] != $1 { print $3 }' "$own/.after" step=2 "$own/.before" |
    while IFS= read -r changed; do rm -f "$own/${changed%.log}.txnindex.txt" "$own/${changed%.log}.txnindex.txt.gz"; done
  awk 'NR == FNR { size[$3] = $2; next } { print $1, ($3 ~ /log$/ && size[$3] > $2 + 0 ? size[$3] : $2), $3 }' "$own/.after" "$own/.before" >"$own/.now"
  mv "$own/.now" "$own/.after"
  echo "  $1 was cleaned or deleted while it was dumped, three times: dump it again later" >&2
  # Of one that was deleted there is nothing left to dump.
  [ ! -d "$folder" ] || echo "$1" >>"$work/torn"
}

# keep_partition PARTITION: puts it in its place, with its rows of the listing (what stood there before *and* after) and its dump times
keep_partition() {
  folder_of "$1"
  own=$texts/$1
  for name in leader-epoch-checkpoint partition.metadata; do
    [ ! -f "$folder/$name" ] || cp "$folder/$name" "$own/"
  done
  # Of what still grows the size from before the dump: its text must show as much.
  awk '
    NR == FNR { before[$3] = $2; if ($3 ~ /^[0-9]+\.log$/ && $3 > newest) newest = $3; next }
    $3 in before { print ($3 == newest || $3 ~ /\.txnindex$/ ? before[$3] : $2), partition "/" $3 }' "$own/.before" partition="$1" "$own/.after" >"$work/listed"
  awk '{ last[$2] = $1 } END { for (name in last) print last[name], name }' "$own/.times" |
    while read -r moment name; do if was_dumped "$1/$name"; then echo "$moment $1/$name"; fi; done | sort -k 2 >"$work/times"
  rm -f "$own"/.[a-z]*
  rm -rf "${into:?}/$1"
  mv "$own" "$into/$1"
  cat "$work/listed" >>"$into/listing.txt"
  cat "$work/times" >>"$into/dumped-at.txt"
  echo "$1" >>"$into/.work/finished"
}

# dump_group: the partitions in $work/group, whose segments are told the same flags, in as few Java processes as possible
dump_group() {
  [ -s "$work/group" ] || return 0
  read -r partition <"$work/group"
  told=$(flags "$partition")
  for attempt in 1 2 3; do
    : >"$work/names"
    while IFS= read -r partition; do begin_partition "$partition"; done <"$work/group"
    # shellcheck disable=SC2086 # the flags are words without spaces
    call_all $told
    : >"$work/names"
    while IFS= read -r partition; do name_indexes "$partition"; done <"$work/group"
    call_all
    : >"$work/again"
    while IFS= read -r partition; do
      if end_partition "$partition"; then
        keep_partition "$partition"
      elif [ "$attempt" -eq 3 ]; then
        torn "$partition"
        keep_partition "$partition"
      else
        echo "$partition" >>"$work/again"
      fi
    done <"$work/group"
    mv "$work/again" "$work/group"
    [ -s "$work/group" ] || break
  done
  : >"$work/group"
}

# room DIR: kilobytes free where DIR is, or would be
room() {
  place=$1
  while [ ! -d "$place" ]; do place=$(dirname "$place"); done
  df -Pk "$place" | awk 'NR == 2 { print $4 }'
}

# stop WHY: on the way; what is done is kept
stop() {
  echo "collect-dumps.sh: $*: unfinished; the same command goes on where it stopped" >&2
  exit 3
}

# not_ended: what fails on the way without a word of its own ends the shell with 1 or 2, and that is neither partial nor nothing
not_ended() {
  code=$?
  [ "$code" -ge 3 ] || stop "failed, see above"
  exit "$code"
}

# What the audit uses of the broker's settings; never a secret.
settings() {
  [ -n "$config" ] || return 0
  for name in transaction.max.timeout.ms transaction.state.log.num.partitions transaction.state.log.replication.factor \
    transaction.state.log.min.isr transaction.partition.verification.enable transaction.abort.timed.out.transaction.cleanup.interval.ms \
    transactional.id.expiration.ms producer.id.expiration.ms offsets.topic.num.partitions offsets.topic.replication.factor \
    log.cleaner.enable log.cleanup.policy log.retention.ms log.message.timestamp.type min.insync.replicas unclean.leader.election.enable \
    remote.log.storage.system.enable; do
    value=$(property "$name" "$config")
    [ -z "$value" ] || printf '  "%s": "%s"\n' "$name" "$value"
  done
}

write_manifest() {
  {
    printf 'cluster: "%s"\n' "$cluster"
    echo '# When the collection began: nothing that happened earlier is missing. dumped-at.txt has the time of each file.'
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

out='' config='' broker='' cluster='' tool='' asked='' log_dirs='' payloads='' gzip=false dry_run=false force=false
call_files=100 call_bytes=268435456 # of one Java process, which costs a second before it begins
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
    --payloads) payloads=' --print-data-log' ;;
    --no-payloads) payloads='' ;; # what is done anyway; it was an option once
    --gzip) gzip=true ;;
    --dry-run) dry_run=true ;;
    --force) force=true ;;
    --help | -h)
      usage
      exit 0
      ;;
    -*) fail "unknown option $1 (--help lists them)" ;;
    '') fail "a topic without a name (a variable that is not set?): name it, or leave the argument out for every partition" ;;
    *) asked="${asked:-|}$1|" ;;
  esac
  shift
done

[ -n "$out" ] || fail "say where to write: --out DIR"
[ ! -e "$out" ] || [ -d "$out" ] || fail "--out $out is a file: name a folder for the dumps"
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
[ -n "$tool" ] || fail "kafka-dump-log is not on the PATH: name it with --kafka-dump-log, or set KAFKA_HOME (releases before 2.0 have none: name that of a later one)"
command -v "$tool" >/dev/null 2>&1 || fail "cannot run $tool"

# One log directory per line: their names may hold spaces.
while IFS= read -r log_dir; do
  [ -d "$log_dir" ] || fail "there is no log directory $log_dir; if its disk failed, name the others, each with --log-dir"
  must_read "$log_dir"
  [ ! -e "$log_dir/meta.properties" ] || must_read "$log_dir/meta.properties"
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
command="topics ${asked:-all} payloads${payloads:- no} gzip $gzip"
if [ -e "$into" ]; then
  [ -e "$into/unfinished.txt" ] || fail "$into exists: nothing is overwritten"
  [ "$(tail -n 1 "$into/unfinished.txt")" = "$command" ] || fail "$into is unfinished, and was begun with other topics or options: remove it, or use those"
  if [ -r "$into/.work/pid" ] && grep -q collect-dumps "/proc/$(cat "$into/.work/pid")/cmdline" 2>/dev/null; then
    fail "process $(cat "$into/.work/pid") is writing $into"
  fi
fi

# One encoding whatever the shell's locale and the Java version. An agent or a JMX port of the broker must not start a second time, and its
# log files are not the tool's.
export LC_ALL=C.UTF-8
export KAFKA_OPTS="-Dfile.encoding=UTF-8 -Dsun.stdout.encoding=UTF-8 -Dstdout.encoding=UTF-8"
export KAFKA_HEAP_OPTS="${DUMP_HEAP_OPTS:--Xmx512m}"
export KAFKA_JVM_PERFORMANCE_OPTS="-XX:+UseSerialGC"
unset TIME_STYLE JMX_PORT KAFKA_JMX_OPTS KAFKA_LOG4J_OPTS KAFKA_GC_LOG_OPTS KAFKA_DEBUG
idle_disk=false
if command -v ionice >/dev/null 2>&1 && ionice -c 3 true 2>/dev/null; then idle_disk=true; fi

# partitions: "<turn> <partition> <folder>" of all that this broker holds. The coordinator's log comes behind the others, so that on a running
# broker it tells of all that they show, and the blocks of producer ids behind all that use them.
partitions() {
  while IFS= read -r log_dir; do
    case "$log_dir" in /*) ;; *) log_dir=$PWD/$log_dir ;; esac # the tool is called from another folder
    for folder in "$log_dir"/*-[0-9]*; do
      name=${folder##*/}
      case "${name##*-}" in *[!0-9]*) continue ;; esac
      [ -d "$folder" ] || continue
      case "$name" in __cluster_metadata-*) turn=4 ;; __transaction_state-*) turn=3 ;; __consumer_offsets-*) turn=2 ;; *) turn=1 ;; esac
      echo "$turn $name $folder"
    done
  done <<DIRS
$log_dirs
DIRS
}

# unknown_topics HELD: what was asked for and is not held, each with the names that come near
unknown_topics() {
  printf '%s' "$asked" | tr '|' '\n' | awk '
    function least(a, b) { return a < b ? a : b }
    function distance(a, b, i, j, above, left, row) {
      for (j = 0; j <= length(b); j++) row[j] = j
      for (i = 1; i <= length(a); i++) {
        above = row[0]; row[0] = i
        for (j = 1; j <= length(b); j++) {
          left = above; above = row[j]
          row[j] = least(least(row[j], row[j - 1]) + 1, left + (substr(a, i, 1) != substr(b, j, 1)))
        }
      }
      return row[length(b)]
    }
    NR == FNR { held[$1] = topics[$1] = 1; sub(/-[0-9]+$/, "", $1); held[$1] = names[$1] = 1; next }
    $1 == "" || $1 in held { next }
    {
      near = ""; topic = $1
      if (sub(/-[0-9]+$/, "", topic) && topic in names) near = " (it holds other partitions of " topic ")"
      else {
        for (name in names) if (index(tolower(name), tolower($1)) || index(tolower($1), tolower(name)) || distance(tolower(name), tolower($1)) <= 2) found = found (found == "" ? "" : ", ") name
        if (found != "") near = " (near: " found ")"
        found = ""
      }
      all = all (all == "" ? "" : "; ") $1 near
    }
    END { if (all != "") print all }' "$1" -
}

# sample: "<bytes of segments> <bytes of text>" of the beginning of some large segments, to tell how much text there will be
sample() {
  largest=$(awk '$1 !~ /^__/ && $3 ~ /log$/ && $2 > 0 { print $2, $1, $3 }' "$work/files" | sort -rn | head -n 5 | while read -r bytes name file; do
    echo "$bytes $(awk -v name="$name" '$2 == name { sub(/^[^ ]* [^ ]* /, ""); print }' "$work/plan.full")/$file"
  done)
  [ -n "$largest" ] || return 0
  # shellcheck disable=SC2086 # the flags are words without spaces
  text=$(gently "$tool" --deep-iteration$payloads --max-bytes 262144 --files "$(echo "$largest" | sed 's/^[0-9]* //' | paste -s -d, -)" 2>/dev/null </dev/null |
    if $gzip; then gzip -c; else cat; fi | wc -c) || :
  [ "$text" -gt 100 ] || return 0 # a tool that does not know --max-bytes (before 3.3) prints nothing; gzip makes 20 bytes of it
  echo "$largest" | awk -v text="$text" '{ bytes += $1 < 262144 ? $1 : 262144 } END { print bytes, text }'
}

human() {
  awk -v kb="$1" 'BEGIN { if (kb < 1024) print kb " KB"; else if (kb < 1048576) printf "%.1f MB\n", kb / 1024; else printf "%.1f GB\n", kb / 1048576 }'
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
partitions >"$work/held"
cut -d ' ' -f 2 "$work/held" >"$work/names"
unknown=$(unknown_topics "$work/names")
while read -r turn name folder; do if wanted "$name"; then echo "$turn $name $folder"; fi; done <"$work/held" | sort -k 1,1n -s >"$work/plan.full"
[ -s "$work/plan.full" ] || fail "broker $broker holds no partition: nothing was dumped"
if [ -n "$unknown" ]; then
  while read -r _ name _; do if asked_for "$name"; then echo "$name"; fi; done <"$work/plan.full" >"$work/names"
  [ -s "$work/names" ] || fail "broker $broker holds no $unknown: nothing was dumped"
  echo "Broker $broker holds no $unknown: the rest is dumped." >&2
fi
metadata_decoder=''
if grep -q '^4 ' "$work/plan.full"; then
  # The tool has it since 2.8.
  if "$tool" --help 2>&1 </dev/null | grep -q -- --cluster-metadata-decoder; then metadata_decoder='--cluster-metadata-decoder '; fi
fi
while read -r _ name folder; do
  [ ! -d "$folder" ] || must_read "$folder"
  files_in "$folder" | awk -v name="$name" '$3 ~ /^[0-9]+\.(log|snapshot|txnindex)$/ { print name, $2, $3 }'
done <"$work/plan.full" >"$work/files"
awk 'NR == FNR { n[$1]++; sum[$1] += $2; next } { printf "%s %d %.0f\n", $2, n[$2], sum[$2] }' "$work/files" "$work/plan.full" >"$work/plan"
set -- "$(sample)"
# The cluster's metadata are small batches, most of them without a word (NoOpRecord): 6.3 bytes of text for each byte, packed 0.4.
totals=$(awk -v sampled="$1" -v rest="$([ -n "$payloads" ] && echo 3 || echo 2)" -v of_metadata="$($gzip && echo 0.4 || echo 6.3)" '
  { files += $2; bytes += $3 }
  $1 ~ /^__cluster_metadata-/ { metadata += $3 }
  END {
    split(sampled, s, " "); ratio = s[1] && s[2] ? s[2] / s[1] : rest
    printf "%d %d %.0f %.0f\n", NR, files, bytes / 1024, ((bytes - metadata) * ratio + metadata * of_metadata) / 1024
  }' "$work/plan")
# shellcheck disable=SC2086 # four numbers
set -- $totals
free=$(room "$out")
echo "$1 partitions, $2 files, $(human "$3"): about $(human "$4") of text; $(human "$free") are free at $out"
if $dry_run; then
  awk '{ print "  " $1 ": " $2 " files, " $3 " bytes" }' "$work/plan"
fi
if [ "$4" -ge "$free" ] && ! $force; then
  fail "that does not fit: name some topics, --gzip$([ -z "$payloads" ] || echo " or no --payloads"), another --out, or --force to begin anyway"
fi
if $dry_run; then
  [ -z "$unknown" ] || exit 1
  exit 0
fi

mkdir -p "$into/.work/texts" 2>/dev/null || fail "cannot make $into: nothing was dumped"
printf '%s\n' "This collection did not finish. The same command goes on where it stopped." "$command" >"$into/unfinished.txt"
mv "$work"/* "$into/.work/"
rmdir "$work"
trap - EXIT
work=$(cd "$into/.work" && pwd) texts=$work/texts at=$work/at
trap not_ended EXIT
case "$tool" in */*) tool=$(cd "$(dirname "$tool")" && pwd)/${tool##*/} ;; esac # it is called from another folder
for signal in HUP:129 INT:130 TERM:143; do
  # shellcheck disable=SC2064 # now
  trap "echo 'collect-dumps.sh: interrupted: unfinished; the same command goes on where it stopped' >&2; exit ${signal#*:}" "${signal%:*}"
done
echo $$ >"$work/pid"
rm -rf "$at" "$work"/dump-* "$work"/part.* "$work"/call*
mkdir "$at"
while read -r _ name folder; do printf '%s' "$folder" >"$at/$name"; done <"$work/plan.full"
touch "$work/finished" "$work/failed" "$work/torn"

# The cutting of one output into a text for each file needs a csplit that repeats; without it one file a process.
if [ "$(printf 'a\nb\na\nb\n' | csplit -s -k -n 5 -f "$work/part." - '/^a/' '{*}' 2>/dev/null && cat "$work/part.00002" 2>/dev/null)" != "$(printf 'a\nb')" ]; then
  call_files=1
fi
rm -f "$work"/part.*

# Before the first dump: nothing that happened earlier is missing from it. What an interrupted run copied stays: it is older.
if [ ! -e "$work/started" ]; then
  started="$(date +%s)000"
  rm -f "$into/listing.txt" "$into"/*-checkpoint
  while IFS= read -r log_dir; do
    copy_checkpoints "$log_dir" replication-offset-checkpoint log-start-offset-checkpoint recovery-point-offset-checkpoint
    list_files "$log_dir"
  done <<DIRS
$log_dirs
DIRS
  write_manifest "$into/manifest.yaml"
  : >"$into/dumped-at.txt"
  touch "$work/started"
fi

# Partitions in groups: few small ones share a Java process.
: >"$work/group"
group_flags='' group_turn='' group_size='0 0'
while read -r turn next _ <&3; do
  if grep -qxF "$next" "$work/finished"; then continue; fi
  size=$(awk -v name="$next" -v so_far="$group_size" '$1 == name { split(so_far, s, " "); printf "%d %.0f\n", s[1] + $2, s[2] + $3 }' "$work/plan")
  if [ "${size% *}" -gt "$call_files" ] || [ "${size#* }" -gt "$call_bytes" ] || [ "$group_flags$group_turn" != "$(flags "$next")$turn" ]; then
    dump_group
    size=$(awk -v name="$next" '$1 == name { print $2, $3 }' "$work/plan")
  fi
  group_flags=$(flags "$next") group_turn=$turn group_size=$size
  echo "$next"
  echo "$next" >>"$work/group"
done 3<"$work/plan.full"
dump_group
# After the last dump: the cleaner may have gone on until then.
rm -f "$into/cleaner-offset-checkpoint"
while IFS= read -r log_dir; do
  copy_checkpoints "$log_dir" cleaner-offset-checkpoint
done <<DIRS
$log_dirs
DIRS
sort -k 2 "$into/listing.txt" >"$work/listing"
mv "$work/listing" "$into/listing.txt"
failures=$(wc -l <"$work/failed") torn=$(paste -s -d ' ' "$work/torn")
rm -rf "${into:?}/.work"
rm -f "$into/unfinished.txt"
trap - EXIT
echo "Dumped to $into; audit it with: eo-audit run '$out'"
if [ "$failures" -gt 0 ]; then
  echo "The dump tool failed on $failures file(s); what it printed until then is kept." >&2
fi
if [ -n "$torn" ]; then
  echo "Not whole, as the cleaner went on: $torn. Dump them again later into another --out, by these names." >&2
fi
if [ -n "$unknown" ]; then
  echo "Not on broker $broker, so not dumped: $unknown." >&2
fi
if [ "$failures" -gt 0 ] || [ -n "$torn" ] || [ -n "$unknown" ]; then exit 1; fi

# shellcheck shell=bash disable=SC2154,SC2015
# Sourced by libtorch.sh: downloads the pinned wheels with pip, one by one, and unpacks them side by
# side into the cache. Finished wheels survive an interruption; the folder appears in one rename.

# Fields of a requirement line: name==version --hash=...  # MB_DOWNLOAD MB_UNPACKED
line_name() { echo "${1%%==*}"; }
line_version() { sed -E 's/^[^=]+==([^ ]+) .*/\1/' <<<"$1"; }
line_mb() { awk -v field="$2" -F'#' '{ split($2, mb, " "); print mb[field] }' <<<"$1"; }

# Prints the finished wheel of a requirement line, if it is there.
finished_wheel() { compgen -G "$1/$(line_name "$2" | tr - _)-$(line_version "$2")-*.whl"; }

# Refuses to start what the disk of the cache cannot hold: the wheels still to come, one more copy
# of the largest while pip moves it into place, and everything unpacked.
check_room() { # FOLDER LINE...
  local folder="$1" line mb need=64 largest=0 free
  shift
  for line in "$@"; do
    if ! finished_wheel "$folder" "$line" >/dev/null; then
      mb="$(line_mb "$line" 1)"
      need=$((need + mb))
      ((mb <= largest)) || largest=$mb
    fi
    need=$((need + $(line_mb "$line" 2)))
  done
  need=$((need + largest))
  free="$(df -Pm -- "$folder" | awk 'NR == 2 { print $4 }')"
  ((free >= need)) ||
    fail 8 "LibTorch needs $need MB of free disk while it is unpacked, $folder has $free MB." \
      "Fix: free some, or put the cache on another disk: ASSAY_CACHE=/other/folder ./assay ..."
}

# Says in one line why pip failed, from its log.
explain_failure() { # LINE LOG
  local what log="$2" reason
  what="$(line_name "$1") $(line_version "$1")"
  if grep -q 'DO NOT MATCH THE HASHES' "$log"; then
    fail 8 "$what was refused: expected sha256" \
      "$(sed -nE 's/^ +Expected sha256 +([0-9a-f]+).*/\1/p' "$log" | head -n 1), got" \
      "$(sed -nE 's/^ +Got +([0-9a-f]+).*/\1/p' "$log" | head -n 1)." \
      "Fix: check which package index pip is set to (pip config list) and try again"
  elif grep -q 'No space left on device' "$log"; then
    fail 8 "no room left in $(dirname -- "$log") while downloading $what. Fix: free some, or" \
      "ASSAY_CACHE=/other/folder ./assay ..."
  elif grep -qE 'NewConnectionError|ConnectTimeout|ReadTimeout|ConnectionError|ProxyError|SSLError' "$log"; then
    fail 8 "cannot download $what: pip does not reach its package index. Fix: check the network and" \
      "proxy (pip config list), then run this again - finished parts are kept - or set" \
      "LIBTORCH=DIR to a LibTorch 2.11"
  fi
  reason="$(sed -n 's/^ERROR: //p' "$log" | tail -n 1)"
  fail 8 "cannot download $what: ${reason:-pip failed} (pip's output: $log)." \
    "Fix: check pip's package index (pip config list), or set LIBTORCH=DIR to a LibTorch 2.11"
}

# The wheel for CPython 3.11 is taken whatever Python runs pip: only the libraries in it are used.
download_wheel() { # FOLDER LINE
  local folder="$1" line="$2" options=("${resume_options[@]}") platform
  for platform in manylinux_2_{28,27,25,18,17,12}_x86_64 manylinux{2014,2010,1}_x86_64; do
    options+=(--platform "$platform")
  done
  rm -rf -- "$folder/part" "$folder/tmp"
  mkdir -p -- "$folder/part" "$folder/tmp"
  printf '%s\n' "$line" >"$folder/requirement.txt"
  local log="$folder/pip.log" out="$folder/pip.log"
  [[ -t 2 ]] && out=/dev/stderr # pip draws its progress bar there
  : >"$log"
  PIP_REQUIRE_VIRTUALENV=0 TMPDIR="$folder/tmp" "$pip_python" -m pip download --no-deps \
    --no-input --no-cache-dir --disable-pip-version-check --timeout 30 --retries 4 \
    --require-hashes --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 \
    "${options[@]}" --dest "$folder/part" --requirement "$folder/requirement.txt" \
    >>"$out" 2>>"$log" || explain_failure "$line" "$log"
  mv -- "$folder/part"/*.whl "$folder/"
  rm -rf -- "$folder/part" "$folder/tmp"
}

fetch_wheels() { # SET
  local set="$1" cache target staging line wheel index=0 total=0
  local lines=()
  [[ $(uname -m) == x86_64 ]] || fail 8 "the pinned LibTorch exists for x86_64 only, this machine" \
    "is $(uname -m). Fix: set LIBTORCH=DIR to a LibTorch 2.11 for it"
  find_pip || fail 2 "needs pip to fetch LibTorch. Fix: apt-get install -y python3-pip"
  cache="$(cache_folder)"
  target="$cache/libtorch-$pinned-$set"
  staging="$cache/.fetch-$pinned-$set"
  mkdir -p -- "$staging" 2>/dev/null && [[ -w $staging ]] ||
    fail 2 "cannot write to the cache $cache as $(id -un). Fix: ASSAY_CACHE=/folder/of/yours"
  exec 8>"$cache/.fetch-lock"
  if ! flock -n 8; then
    say "LibTorch is being fetched by another process; waiting for it"
    flock 8
    is_complete "$set" "$target" && return
    mkdir -p -- "$staging"
  fi

  resume_options=() # newer ones go on inside a wheel
  if "$pip_python" -m pip download --help | grep -q resume-retries; then
    resume_options=(--resume-retries 10)
  fi
  mapfile -t lines < <(requirements "$set")
  check_room "$staging" "${lines[@]}"
  for line in "${lines[@]}"; do
    total=$((total + $(line_mb "$line" 1)))
  done
  say "fetching LibTorch $pinned: ${#lines[@]} wheels, $total MB, into $cache"
  for line in "${lines[@]}"; do
    index=$((index + 1))
    if finished_wheel "$staging" "$line" >/dev/null; then
      say "[$index/${#lines[@]}] $(line_name "$line"): already here"
    else
      say "[$index/${#lines[@]}] $(line_name "$line") $(line_version "$line")," \
        "$(line_mb "$line" 1) MB"
      download_wheel "$staging" "$line"
    fi
  done

  rm -rf -- "$staging/site"
  mkdir -- "$staging/site"
  for line in "${lines[@]}"; do
    wheel="$(finished_wheel "$staging" "$line")"
    say "unpacking $(line_name "$line"), $(line_mb "$line" 2) MB"
    "$pip_python" -m zipfile -e "$wheel" "$staging/site" ||
      fail 8 "cannot unpack $wheel (see above). Fix: delete $staging and run this again"
  done
  requirements "$set" >"$staging/site/.complete"
  rm -rf -- "$target"
  mv -- "$staging/site" "$target"
  rm -rf -- "$staging"
  exec 8>&-
}

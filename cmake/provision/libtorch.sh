#!/usr/bin/env bash
# libtorch.sh find:  prints the folder that holds lib/libtorch_cpu.so, looked for in this order:
#                    LIBTORCH, the torch that python3 has if it is the pinned version, the cache.
# libtorch.sh fetch: the same, and if there is none downloads the pinned wheels into the cache.
# Exit: 1 not found, 2 LIBTORCH cannot be used, 8 cannot be fetched here.
set -euo pipefail
unset CDPATH
here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)"
source "$here/common.sh"
source "$here/packages.sh"

readonly pinned=2.11.0

# Prints the torch folder in $1: site-packages, the torch folder itself, or an unpacked archive.
torch_folder() {
  local folder
  for folder in "$1/torch" "$1" "$1/libtorch"; do
    if [[ -e $folder/lib/libtorch_cpu.so && -d $folder/include ]]; then
      (cd -- "$folder" && pwd -P)
      return
    fi
  done
  return 1
}

torch_version() {
  local header
  for header in headeronly/version.h csrc/api/include/torch/version.h; do
    sed -nE 's/^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' \
      "$1/include/torch/$header" 2>/dev/null | paste -sd. | grep . && return
  done
  echo unknown
}

# Prints number $2 of the first header named $1 in the CUDA toolkit's or the system's include folder.
header_number() {
  local folder
  for folder in "${CUDA_HOME:-/usr/local/cuda}/include" /usr/include; do
    if [[ -e $folder/$1 ]]; then
      sed -nE "s/^#define $2[ \t]+([0-9]+).*/\1/p" "$folder/$1" | head -n 1
      return
    fi
  done
}

# True if there is a CUDA 13 toolkit with an NCCL and cuDNN at least as new as LibTorch's own.
has_toolkit() {
  local cuda nccl cudnn_major cudnn_minor
  cuda="$(header_number cuda.h CUDA_VERSION)"
  nccl="$(header_number nccl.h NCCL_VERSION_CODE)"
  cudnn_major="$(header_number cudnn_version.h CUDNN_MAJOR)"
  cudnn_minor="$(header_number cudnn_version.h CUDNN_MINOR)"
  ((${cuda:-0} >= 13000 && ${cuda:-0} < 14000 && ${nccl:-0} >= 22809 &&
    ${cudnn_major:-0} == 9 && ${cudnn_minor:-0} >= 19))
}

# Which wheels this machine needs: cpu; link (+ what a toolkit lacks); gpu (everything).
wanted_set() {
  case "${ASSAY_LIBTORCH_SET:-}" in
    cpu | link | gpu) echo "$ASSAY_LIBTORCH_SET" ;;
    "") if has_toolkit; then echo link; elif has_gpu; then echo gpu; else echo cpu; fi ;;
    *) fail 2 "ASSAY_LIBTORCH_SET is '$ASSAY_LIBTORCH_SET', must be cpu, link or gpu" ;;
  esac
}

# Prints the requirement lines of a set.
requirements() {
  local files=("$here/cpu.txt")
  [[ $1 == cpu ]] || files+=("$here/link.txt")
  [[ $1 == gpu ]] && files+=("$here/gpu.txt")
  grep -hv '^#' "${files[@]}"
}

# True if headers for CUDA code lie beside the torch folder $1 or in a toolkit.
has_cuda_headers() {
  local header
  for header in cuda_runtime_api.h crt/host_defines.h nccl.h; do
    compgen -G "$1/../nvidia/*/include/$header" >/dev/null ||
      [[ -e ${CUDA_HOME:-/usr/local/cuda}/include/$header || -e /usr/include/$header ]] || return 1
  done
}

find_hinted() {
  local hint="${LIBTORCH_HINT:-${LIBTORCH:-}}" folder version
  [[ -n $hint ]] || return 1
  folder="$(torch_folder "$hint")" ||
    fail 2 "LIBTORCH is '$hint', but neither it nor its torch/ or libtorch/ folder has" \
      "lib/libtorch_cpu.so and include/. Fix: name the folder that holds torch/ and nvidia/," \
      "or unset LIBTORCH"
  version="$(torch_version "$folder")"
  [[ $version == 2.11.* ]] ||
    fail 2 "LIBTORCH is '$hint', which holds version $version, expected 2.11." \
      "Fix: name a LibTorch 2.11, or unset LIBTORCH"
  echo "$folder"
}

# The torch of python3 counts if it is the pinned version, loads, and can do what the machine can.
find_in_python() {
  local found version folder
  found="$(cd / && python3 -c '
import importlib.metadata, importlib.util
print(importlib.metadata.version("torch"))
print(importlib.util.find_spec("torch").submodule_search_locations[0])' 2>/dev/null)" || return 1
  version="${found%%$'\n'*}"
  [[ ${version%%+*} == "$pinned" ]] || return 1
  folder="$(torch_folder "${found#*$'\n'}")" || return 1
  if ldd "$folder/lib/libtorch_cpu.so" 2>/dev/null | grep -q 'not found'; then
    return 1
  fi
  if has_gpu && ! { [[ -e $folder/lib/libtorch_cuda.so ]] && has_cuda_headers "$folder"; }; then
    return 1
  fi
  echo "$folder"
}

# A finished folder holds the requirement lines that it was made from.
is_complete() { # SET FOLDER
  [[ -e $2/torch/lib/libtorch_cpu.so ]] && cmp -s <(requirements "$1") "$2/.complete"
}

find_in_cache() {
  local wanted set reached=0 cache
  cache="$(cache_folder)"
  wanted="$(wanted_set)"
  for set in cpu link gpu; do # each holds the one before
    [[ $set == "$wanted" ]] && reached=1
    if ((reached)) && is_complete "$set" "$cache/libtorch-$pinned-$set"; then
      torch_folder "$cache/libtorch-$pinned-$set"
      return
    fi
  done
  return 1
}

# Each search runs in a subshell, where `fail` ends only that: its code is passed on.
main() {
  local rc=0 folder
  folder="$(find_hinted)" || rc=$?
  ((rc <= 1)) || exit "$rc"
  if [[ -z $folder ]]; then
    folder="$(find_in_python)" || folder="$(find_in_cache)" || {
      rc=$?
      ((rc == 1)) || exit "$rc"
    }
  fi
  if [[ -z $folder && $1 == fetch ]]; then
    source "$here/fetch.sh"
    fetch_wheels "$(wanted_set)" >&2
    folder="$(find_in_cache)"
  fi
  [[ -n $folder ]] || fail 1 "LibTorch $pinned was not found: LIBTORCH is not set, python3 has no" \
    "torch $pinned, and the cache $(cache_folder) holds none." \
    "Fix: run ./assay once, which fetches it, or set LIBTORCH=DIR"
  echo "$folder"
}

case "${1:-}" in
  find | fetch) main "$1" ;;
  *) fail 2 "usage: libtorch.sh find|fetch" ;;
esac

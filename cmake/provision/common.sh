# shellcheck shell=bash
# Sourced by ./assay and libtorch.sh: messages, the cache folder, and what machine this is.

# say WORDS...: one line on stderr.
say() { printf 'assay: %s\n' "$*" >&2; }

# fail CODE WORDS...: one line on stderr, then exit with CODE (2: something to install or to set;
# 8: cannot be provided here, e.g. no network or no room; 1: our bug).
fail() {
  local code="$1"
  shift
  say "$@"
  exit "$code"
}

# Prints the folder that holds LibTorch and the compiler cache. May be deleted at any time.
cache_folder() {
  if [[ -n ${ASSAY_CACHE:-} ]]; then
    realpath -ms -- "$ASSAY_CACHE"
  elif [[ -n ${XDG_CACHE_HOME:-} ]]; then
    echo "$XDG_CACHE_HOME/assay"
  elif [[ -n ${HOME:-} ]]; then
    echo "$HOME/.cache/assay"
  else
    fail 2 "neither ASSAY_CACHE, XDG_CACHE_HOME nor HOME is set, so there is no place for the" \
      "cache. Fix: ASSAY_CACHE=/some/folder ./assay ..."
  fi
}

# True where an NVIDIA driver offers a GPU (/dev/dxg: in WSL).
has_gpu() {
  [[ -e /dev/nvidiactl || -e /dev/dxg ]] ||
    { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }
}

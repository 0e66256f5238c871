# shellcheck shell=bash
# Sourced by the tests beside it: a copy of the wrapper in a folder with a space in its name, and a
# PATH of links, from which a test takes tools away or replaces them by small scripts.
set -euo pipefail

readonly source_root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)"
sandbox="$(mktemp -d "${TMPDIR:-/tmp}/assay-build-test.XXXXXX")"
trap 'rm -rf -- "$sandbox"' EXIT
chmod 755 "$sandbox"
readonly checkout="$sandbox/check out"
readonly tools="$sandbox/tools"

# The machine's own settings must not reach the code under test.
unset LIBTORCH LIBTORCH_HINT CXX ASSAY_NO_INSTALL XDG_CACHE_HOME
for name in $(compgen -e | grep '^PIP_' || true); do unset "$name"; done
export PIP_CONFIG_FILE=/dev/null
export HOME="$sandbox/home" ASSAY_CACHE="$sandbox/cache" ASSAY_LIBTORCH_SET=cpu
mkdir -p "$HOME"

die() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

skip() {
  printf 'SKIPPED: %s\n' "$*" >&2
  exit 77
}

# run COMMAND...: sets $code, $out (stdout) and $err (stderr).
run() {
  code=0
  "$@" >"$sandbox/out" 2>"$sandbox/err" </dev/null || code=$?
  out="$(cat "$sandbox/out")"
  err="$(cat "$sandbox/err")"
}

expect_code() { [[ $code == "$1" ]] || die "exit code $code, expected $1; stderr: $err"; }
expect_in() { # TEXT WHERE
  [[ $2 == *"$1"* ]] || die "expected '$1' in: $2"
}
expect_not_in() { [[ $2 != *"$1"* ]] || die "did not expect '$1' in: $2"; }
expect_one_line() { [[ -n $1 && $(wc -l <<<"$1") == 1 ]] || die "expected one line, got: $1"; }

# The parts of the tree that the wrapper itself reads.
make_checkout() {
  local folder
  mkdir -p "$checkout/cmake"
  cp -- "$source_root/assay" "$source_root/CMakePresets.json" "$source_root/CMakeLists.txt" \
    "$checkout/"
  cp -r -- "$source_root/cmake/provision" "$checkout/cmake/"
  for folder in base checkpoints cli data harness models platform third_party trainer; do
    mkdir "$checkout/$folder"
    : >"$checkout/$folder/source.cpp"
  done
}

# A PATH with links to everything in /usr/bin, without build tools; python3 has no torch.
make_tools() {
  mkdir "$tools"
  ln -s /usr/bin/* "$tools/"
  ln -sf /bin/bash "$tools/bash"
  rm -f -- "$tools"/{apt-get,cmake,ctest,ninja,ninja-build,ccache,nvidia-smi}
  make_tool python3 "[[ \$1 != -c ]] || exit 1; exec '$(command -v python3 || echo false)' \"\$@\""
  export PATH="$tools"
}

# make_tool NAME SCRIPT: a script in place of a tool.
make_tool() {
  rm -f -- "$tools/$1"
  printf '#!/bin/bash\n%s\n' "$2" >"$tools/$1"
  chmod 755 "$tools/$1"
}

# Something that passes for LibTorch 2.11.0, in site-packages' layout.
make_libtorch() { # FOLDER [MINOR]
  mkdir -p "$1/torch/lib" "$1/torch/include/torch/headeronly"
  : >"$1/torch/lib/libtorch_cpu.so"
  printf '#define TORCH_VERSION_%s\n' "MAJOR 2" "MINOR ${2:-11}" "PATCH 0" \
    >"$1/torch/include/torch/headeronly/version.h"
}

# Runs the function that the command line names.
run_case() {
  declare -F "$1" >/dev/null || die "no test case '$1'"
  "$1"
}

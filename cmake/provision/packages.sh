# shellcheck shell=bash
# Sourced by ./assay after common.sh: finds which build tools and headers are missing - by their
# presence, not by asking the package manager - and installs them with apt-get if that is allowed.

# Debian's and Ubuntu's name, then the header.
readonly build_headers=("nlohmann-json3-dev nlohmann/json.hpp" "libcxxopts-dev cxxopts.hpp"
  "zlib1g-dev zlib.h")
# Come along where something is installed anyway; without one of them a part says that it lacks it.
readonly optional_headers=("libpcre2-dev pcre2.h" "libjpeg-dev jpeglib.h" "libpng-dev png.h")
readonly test_headers=("libgtest-dev gtest/gtest.h" "libgmock-dev gmock/gmock.h")

missing_words=()
missing_packages=()

lacks() { # lacks PACKAGE WORDS
  missing_packages+=("$1")
  missing_words+=("$2")
}

# Prints "__GNUC__ __clang_major__" as compiler $1 sees them (clang's stays a word under gcc), then
# "missing N" for the N-th of the other arguments ("PACKAGE HEADER") whose header it does not find.
probe_compiler() {
  local compiler="$1" entry index=0
  shift
  {
    echo "__GNUC__ __clang_major__"
    for entry in "$@"; do
      printf '#if !__has_include(<%s>)\nmissing %d\n#endif\n' "${entry#* }" "$index"
      index=$((index + 1))
    done
  } | $compiler -E -P -x c++ - 2>/dev/null # unquoted: CXX may be "ccache g++"
}

# Sets `compiler` to the first C++ compiler that is new enough, and notes missing headers.
check_compiler() {
  local headers=("$@") candidate answer gcc clang index word seen=""
  compiler=""
  for candidate in "${CXX:-g++}" c++ g++-14 g++-13 g++-12 clang++; do
    command -v "${candidate##* }" >/dev/null || continue
    answer="$(probe_compiler "$candidate" "${headers[@]}")" || continue
    read -r gcc clang <<<"${answer%%$'\n'*}"
    if [[ $clang =~ ^[0-9]+$ ]]; then
      seen+=" $candidate is clang $clang"
      ((clang >= 14)) || continue
    else
      seen+=" $candidate is gcc $gcc"
      ((gcc >= 12)) || continue
    fi
    compiler="$candidate"
    break
  done
  if [[ -z $compiler ]]; then
    lacks g++ "a C++20 compiler (g++ >= 12 or clang++ >= 14; found:${seen:- none})"
    for index in "${headers[@]}"; do # nobody to ask: look where packages put them
      [[ -e /usr/include/${index#* } ]] || lacks "${index% *}" "${index#* }"
    done
    return
  fi
  while read -r word index; do
    [[ $word != missing ]] || lacks "${headers[index]% *}" "${headers[index]#* }"
  done <<<"$answer"
}

# True if the version $1 is at least $2.
at_least() { [[ $(printf '%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

# check_tools MODE PIP: fills missing_packages and missing_words.
check_tools() {
  local mode="$1" pip="$2" version headers=("${build_headers[@]}")
  missing_words=()
  missing_packages=()
  hash -r
  [[ $mode == test ]] && headers+=("${test_headers[@]}")
  check_compiler "${headers[@]}"
  version="$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*//p')" || true
  if [[ -z $version ]]; then
    lacks cmake "cmake >= 3.25"
  elif ! at_least "$version" 3.25; then
    lacks cmake "cmake >= 3.25 (found: $version)"
  fi
  command -v ninja >/dev/null || command -v ninja-build >/dev/null || lacks ninja-build "ninja"
  if [[ $pip == pip ]] && ! find_pip; then
    lacks python3 "python3"
    lacks python3-pip "pip (to fetch LibTorch)"
    [[ -e /etc/ssl/certs/ca-certificates.crt || -d /etc/pki ]] ||
      lacks ca-certificates "ca-certificates"
  fi
}

# Sets `pip_python` to a Python that has pip.
find_pip() {
  for pip_python in python3 /usr/bin/python3; do
    if command -v "$pip_python" >/dev/null && "$pip_python" -m pip --version >/dev/null 2>&1; then
      return 0
    fi
  done
  return 1
}

# Shows a command, then runs it without a terminal to ask questions on.
shown() {
  say "+ $*"
  "$@" >&2 </dev/null
}

# provide_packages run|test pip|no-pip: returns with everything there, or exits. Exports CXX.
provide_packages() {
  local what
  check_tools "$@"
  if ((${#missing_packages[@]} > 0)); then
    what="$(printf '%s, ' "${missing_words[@]}")"
    what="needs ${what%, }. Fix:"
    if ! command -v apt-get >/dev/null; then
      fail 2 "$what install what Debian calls ${missing_packages[*]}"
    elif ((EUID != 0)); then
      fail 2 "$what sudo apt-get install -y ${missing_packages[*]}"
    elif [[ -n ${ASSAY_NO_INSTALL:-} && ${ASSAY_NO_INSTALL} != 0 ]]; then
      fail 2 "$what apt-get install -y ${missing_packages[*]} (ASSAY_NO_INSTALL=$ASSAY_NO_INSTALL" \
        "keeps ./assay from doing it)"
    fi
    install_packages
    check_tools "$@"
    if ((${#missing_packages[@]} > 0)); then
      what="$(printf '%s, ' "${missing_words[@]}")"
      fail 2 "still needs ${what%, } after apt-get installed what this distribution has." \
        "Fix: Debian 12, Ubuntu 24.04 or newer, or put newer ones first in PATH"
    fi
  fi
  export CXX="$compiler" # the one that was checked, not what cmake would find first
}

# ccache and the optional headers come along where something is installed anyway; they are never a
# reason to install.
install_packages() {
  local entry
  export DEBIAN_FRONTEND=noninteractive
  command -v ccache >/dev/null || missing_packages+=(ccache)
  for entry in "${optional_headers[@]}"; do
    [[ -e /usr/include/${entry#* } ]] || missing_packages+=("${entry% *}")
  done
  # The timeout waits for a package manager that runs on its own on a new machine.
  shown apt-get -qq -o DPkg::Lock::Timeout=300 update ||
    say "apt-get update failed; trying with the package lists that are there"
  shown apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends \
    "${missing_packages[@]}" ||
    fail 8 "apt-get could not install ${missing_packages[*]} (its output is above). Fix: check the" \
      "network and the package sources, then run this again"
}

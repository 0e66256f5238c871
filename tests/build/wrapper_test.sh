#!/usr/bin/env bash
# Tests of ./assay: what it asks for, what it installs, when it builds and when it does not. cmake,
# ninja and apt-get are small scripts here that leave a trace, so no test compiles anything.
source "$(dirname -- "${BASH_SOURCE[0]}")/sandbox.sh"
make_checkout
make_tools
make_libtorch "$sandbox/site"
export LIBTORCH="$sandbox/site"
# A compiler that finds every header: what is missing must not depend on this machine.
make_tool g++ "cat >/dev/null; echo '12 __clang_major__'"

# A cmake that "builds" programs which print their name and arguments.
add_build_tools() {
  make_tool ninja "exit 0"
  make_tool ctest "printf 'ctest:%s\n' \"\$*\""
  make_tool cmake "
case \"\$1\" in
  --version) echo 'cmake version 3.25.1' ;;
  --preset)
    echo \"configure \$*\" >>'$sandbox/trace'
    printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\n' \"\$PWD\" >build/release/CMakeCache.txt
    : >build/release/build.ninja ;;
  --build)
    echo \"build \$*\" >>'$sandbox/trace'
    sleep \"\${BUILD_SECONDS:-0}\"
    [[ ! -e '$sandbox/broken' ]] || { echo 'error: broken' >&2; exit 1; }
    mkdir -p \"\$2/bin\"
    for name in assay assay-train; do
      printf '#!/bin/bash\nprintf \"%%s:\" \"\$0\" \"\$@\"\n' >\"\$2/bin/\$name\"
      chmod 755 \"\$2/bin/\$name\"
    done ;;
esac"
}

num_builds() { grep -c '^build ' "$sandbox/trace" || true; }

# Time stamps of one file system tick apart, without waiting for the clock.
age_build() { find "$checkout" -exec touch -h -d '1 hour ago' {} +; }

as_nobody() {
  if ((EUID != 0)); then
    "$@"
  else
    command -v setpriv >/dev/null || skip "running as root, and setpriv is not installed"
    chown -R 65534:65534 "$checkout" "$sandbox/home"
    setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
  fi
}

NoRootGetsOneLine() {
  make_tool apt-get "echo called >>'$sandbox/trace'"
  run as_nobody "$checkout/assay" --version
  expect_code 2
  expect_one_line "$err"
  expect_in "needs cmake >= 3.25, ninja. Fix: sudo apt-get install -y cmake ninja-build" "$err"
  [[ -z $out && ! -e $sandbox/trace ]] || die "printed '$out' or called apt-get"
}

NoInstallForbidsAptGet() {
  ((EUID == 0)) || skip "not root: apt-get would not be tried anyway"
  make_tool apt-get "echo called >>'$sandbox/trace'"
  export ASSAY_NO_INSTALL=1
  run "$checkout/assay" accept
  expect_code 2
  expect_one_line "$err"
  expect_in "Fix: apt-get install -y cmake ninja-build (ASSAY_NO_INSTALL=1" "$err"
  [[ ! -e $sandbox/trace ]] || die "called apt-get"
}

RootInstallsShowingCommands() {
  ((EUID == 0)) || skip "not root"
  add_build_tools
  mkdir "$sandbox/archive"
  mv "$tools/cmake" "$tools/ninja" "$sandbox/archive/"
  make_tool apt-get "echo \"apt-get \$DEBIAN_FRONTEND \$*\" >>'$sandbox/trace'
[[ \$* != *install* ]] || cp '$sandbox/archive/'* '$tools/'"
  run "$checkout/assay" train --max_steps 3
  expect_code 0
  expect_in "+ apt-get -qq -o DPkg::Lock::Timeout=300 update" "$err"
  expect_in "install -y --no-install-recommends cmake ninja-build" "$err"
  expect_in "apt-get noninteractive" "$(cat "$sandbox/trace")"
  [[ $(grep -c update "$sandbox/trace") == 1 ]] || die "more than one update"
  [[ $out == "$checkout/build/release/bin/assay:train:--max_steps:3:" ]] || die "got: $out"
}

AptGetFailureIsNamed() {
  ((EUID == 0)) || skip "not root"
  make_tool apt-get "echo 'E: Unable to locate package' >&2; exit 100"
  run "$checkout/assay" --version
  expect_code 8
  expect_in "apt-get could not install cmake ninja-build" "$err"
}

OldToolsAreNamed() {
  make_tool cmake "echo 'cmake version 3.22.1'"
  make_tool ninja "exit 0"
  make_tool g++ "cat >/dev/null; echo '11 __clang_major__'"
  rm -f -- "$tools"/{c++,clang++,g++-12,g++-13,g++-14}
  export ASSAY_NO_INSTALL=1
  run "$checkout/assay" --version
  expect_code 2
  expect_one_line "$err"
  expect_in "g++ is gcc 11" "$err"
  expect_in "cmake >= 3.25 (found: 3.22.1)" "$err"
}

NoCompilerIsNamed() {
  make_tool apt-get "exit 1"
  rm -f -- "$tools"/{g++,c++,clang++,g++-12,g++-13,g++-14}
  export ASSAY_NO_INSTALL=1
  run "$checkout/assay" --version
  expect_code 2
  expect_one_line "$err"
  expect_in "a C++20 compiler (g++ >= 12 or clang++ >= 14; found: none)" "$err"
  expect_in "apt-get install -y g++ " "$err"
}

SecondCallStartsAtOnce() {
  add_build_tools
  run "$checkout/assay" --version
  expect_code 0
  cd /
  ln -s "$checkout/assay" "$sandbox/link"
  run "$sandbox/link" accept --output "a b"
  expect_code 0
  [[ -z $err ]] || die "printed: $err"
  [[ $out == "$checkout/build/release/bin/assay:accept:--output:a b:" ]] || die "got: $out"
  [[ $(num_builds) == 1 ]] || die "built again: $(cat "$sandbox/trace")"
}

ChangedSourceRebuilds() {
  add_build_tools
  run "$checkout/assay" --version
  age_build
  run "$checkout/assay" --version
  [[ $(num_builds) == 1 ]] || die "built again without a change"
  touch "$checkout/models/source.cpp"
  run "$checkout/assay" --version
  expect_code 0
  [[ $(num_builds) == 2 ]] || die "did not build again after a change"
}

RunFoldersAreNoSources() {
  add_build_tools
  run "$checkout/assay" --version
  age_build
  mkdir -p "$checkout/checkpoints/smoke/checkpoint-15"
  : >"$checkout/checkpoints/smoke/checkpoint-15/manifest.json"
  run "$checkout/assay" --version
  expect_code 0
  [[ -z $err && $(num_builds) == 1 ]] || die "a run folder started a build: $err"
  touch "$checkout/checkpoints/source.cpp"
  run "$checkout/assay" --version
  [[ $(num_builds) == 2 ]] || die "a changed source in checkpoints/ started no build"
}

MovedCheckoutReconfigures() {
  add_build_tools
  run "$checkout/assay" --version
  mv "$checkout" "$sandbox/moved"
  run "$sandbox/moved/assay" --version
  expect_code 0
  expect_in "--fresh" "$(tail -n 2 "$sandbox/trace")"
  expect_in "$sandbox/moved/build/release/bin/assay" "$out"
}

FailedBuildIsRepeated() {
  add_build_tools
  : >"$sandbox/broken"
  run "$checkout/assay" --version
  expect_code 1
  expect_in "the build failed" "$err"
  rm "$sandbox/broken"
  run "$checkout/assay" --version
  expect_code 0
  [[ $(num_builds) == 2 ]] || die "the second call did not build"
}

SecondWrapperWaits() {
  add_build_tools
  mkdir -p "$checkout/build/release"
  exec 7>"$checkout/build/release/.assay-lock"
  flock 7
  "$checkout/assay" --version >"$sandbox/first" 2>&1 7>&- &
  "$checkout/assay" --version >"$sandbox/second" 2>&1 7>&- &
  local tries=0
  until grep -qs 'waiting for it' "$sandbox/first" && grep -qs 'waiting for it' "$sandbox/second"; do
    ((++tries < 1000)) || die "a wrapper did not wait: $(cat "$sandbox/first" "$sandbox/second")"
    read -r -t 0.01 <> <(:) || true
  done
  [[ ! -e $sandbox/trace ]] || die "built while the lock was held"
  exec 7>&-
  wait
  [[ $(num_builds) == 1 ]] || die "built $(num_builds) times, expected once"
}

TestPassesOptionsToCtest() {
  add_build_tools
  run "$checkout/assay" test -R Sampler --timeout 5
  expect_code 0
  [[ $out == "ctest:--preset release -R Sampler --timeout 5" ]] || die "got: $out"
  expect_in "-DBUILD_TESTING=ON" "$(cat "$sandbox/trace")"
  make_tool ctest "exit 8"
  run "$checkout/assay" test
  expect_code 8
}

run_case "$1"

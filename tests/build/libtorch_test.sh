#!/usr/bin/env bash
# Tests of cmake/provision/libtorch.sh: which LibTorch is taken, and what a download does when the
# network, the disk or the files are not as they should be. The wheels are small ones made here.
source "$(dirname -- "${BASH_SOURCE[0]}")/sandbox.sh"
make_checkout
make_tools
libtorch="$checkout/cmake/provision/libtorch.sh"
wheels="$sandbox/wheels"

# make_wheel NAME VERSION TAG FILE...: an installable wheel; adds its pinned line to cpu.txt.
make_wheel() {
  local name="$1" version="$2" tag="$3" wheel
  shift 3
  wheel="$wheels/${name//-/_}-$version-$tag.whl"
  python3 - "$wheel" "$name" "$version" "$tag" "$sandbox/site" "$@" <<'PYTHON'
import os, sys, zipfile
wheel, name, version, tag, root, *files = sys.argv[1:]
info = f"{name.replace('-', '_')}-{version}.dist-info"
with zipfile.ZipFile(wheel, "w") as archive:
    for file in files:
        archive.write(os.path.join(root, file), file)
    archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
    archive.writestr(f"{info}/RECORD", "")
PYTHON
  printf '%s==%s --hash=sha256:%s  # 1 1\n' "$name" "$version" \
    "$(sha256sum "$wheel" | cut -d' ' -f1)" >>"$checkout/cmake/provision/cpu.txt"
}

# Two wheels, of the two kinds that the real ones are of; pip looks nowhere else.
make_wheels() {
  "$tools/python3" -m pip --version >/dev/null 2>&1 || skip "python3 has no pip"
  mkdir "$wheels"
  make_libtorch "$sandbox/site"
  mkdir -p "$sandbox/site/nvidia/cu13/lib"
  : >"$sandbox/site/nvidia/cu13/lib/libcudart.so.13"
  : >"$checkout/cmake/provision/cpu.txt"
  make_wheel torch 2.11.0 cp311-cp311-manylinux_2_28_x86_64 torch/lib/libtorch_cpu.so \
    torch/include/torch/headeronly/version.h
  make_wheel nvidia-cuda-runtime 13.0.96 py3-none-manylinux_2_17_x86_64 \
    nvidia/cu13/lib/libcudart.so.13
  export PIP_NO_INDEX=1 PIP_FIND_LINKS="$wheels"
}

AcceptsEveryLayout() {
  make_libtorch "$sandbox/site"
  mkdir "$sandbox/archive"
  cp -r "$sandbox/site/torch" "$sandbox/archive/libtorch"
  local given expected
  for given in site site/torch archive archive/libtorch; do
    expected="$sandbox/${given%%/*}/$([[ $given == site* ]] && echo torch || echo libtorch)"
    LIBTORCH="$sandbox/$given" run bash "$libtorch" find
    expect_code 0
    [[ $out == "$expected" ]] || die "LIBTORCH=$given gave $out, expected $expected"
  done
}

RefusesWrongFolder() {
  LIBTORCH="$sandbox/nowhere" run bash "$libtorch" fetch
  expect_code 2
  expect_one_line "$err"
  expect_in "LIBTORCH is '$sandbox/nowhere', but" "$err"
}

RefusesOtherVersion() {
  make_libtorch "$sandbox/site" 9
  LIBTORCH="$sandbox/site" run bash "$libtorch" find
  expect_code 2
  expect_in "holds version 2.9.0, expected 2.11" "$err"
}

UnpacksIntoCache() {
  make_wheels
  run bash "$libtorch" find
  expect_code 1
  expect_one_line "$err"
  run bash "$libtorch" fetch
  expect_code 0
  [[ $out == "$ASSAY_CACHE/libtorch-2.11.0-cpu/torch" ]] || die "got: $out"
  [[ -e $out/../nvidia/cu13/lib/libcudart.so.13 ]] || die "the wheels do not lie side by side"
  [[ ! -e $ASSAY_CACHE/.fetch-2.11.0-cpu ]] || die "left its working folder behind"
  rm -r "$wheels"
  run bash "$libtorch" fetch
  expect_code 0
  [[ -z $err ]] || die "fetched again: $err"
}

GoesOnWhereItStopped() {
  make_wheels
  mv "$wheels"/nvidia* "$sandbox/"
  run bash "$libtorch" fetch
  expect_code 8
  expect_in "nvidia-cuda-runtime 13.0.96" "$err"
  [[ ! -e $ASSAY_CACHE/libtorch-2.11.0-cpu ]] || die "an unfinished folder appeared"
  rm "$wheels"/torch*
  mv "$sandbox"/nvidia*.whl "$wheels/"
  run bash "$libtorch" fetch
  expect_code 0
  expect_in "torch: already here" "$err"
}

RefusesBrokenHash() {
  make_wheels
  local pinned_hash
  pinned_hash="$(sha256sum "$wheels"/torch*.whl | cut -d' ' -f1)"
  printf 'x' >>"$(compgen -G "$wheels/torch*.whl")"
  run bash "$libtorch" fetch
  expect_code 8
  expect_in "torch 2.11.0 was refused: expected sha256 $pinned_hash, got" "$err"
  expect_in "$(sha256sum "$wheels"/torch*.whl | cut -d' ' -f1)" "$err"
  [[ ! -e $ASSAY_CACHE/libtorch-2.11.0-cpu ]] || die "unpacked it all the same"
}

NamesMissingNetwork() {
  make_wheels
  unset PIP_NO_INDEX PIP_FIND_LINKS
  export PIP_INDEX_URL=http://127.0.0.1:9/ # the discard port: nobody listens
  run bash "$libtorch" fetch
  expect_code 8
  expect_in "cannot download torch 2.11.0: pip does not reach its package index" "$err"
  [[ $(grep -c 'cannot download' <<<"$err") == 1 ]] || die "more than one error: $err"
}

NamesMissingRoom() {
  "$tools/python3" -m pip --version >/dev/null 2>&1 || skip "python3 has no pip"
  mkdir "$ASSAY_CACHE"
  # shellcheck disable=SC2016
  local script='mount -t tmpfs -o size=16m none "$ASSAY_CACHE" || exit 77; bash "$1" fetch'
  run unshare -m bash -c "$script" - "$libtorch"
  [[ $code != 77 && $err != *"unshare failed"* ]] || skip "cannot mount a small disk: $err"
  expect_code 8
  expect_in "LibTorch needs" "$err"
  expect_in "$ASSAY_CACHE/.fetch-2.11.0-cpu has 16 MB" "$err"
}

run_case "$1"

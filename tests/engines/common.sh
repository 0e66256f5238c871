# Sourced by the engine tests: a small run, its control, and clean ends. Needs ASSAY (the program)
# and BUILD_BIN (its folder). Exit code 77: this machine lacks the engine.
set -u
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
WORK=$(mktemp -d)
CLEANUPS=()
clean_up() {
  local i
  for ((i = ${#CLEANUPS[@]} - 1; i >= 0; --i)); do eval "${CLEANUPS[$i]}" >/dev/null 2>&1; done
  rm -rf "$WORK"
}
trap clean_up EXIT
cd "$WORK" || exit 1

skip() { echo "SKIP: $1"; exit 77; }
fail() { for f in "$WORK"/*.log; do [ -f "$f" ] && { echo "--- $f"; tail -n 12 "$f"; }; done; echo "FAIL: $1"; exit 1; }
need() { command -v "$1" >/dev/null 2>&1 || skip "$1 is not installed"; }
need_root() { [ "$(id -u)" = 0 ] || skip "needs root"; }

# A GPT of 21,472 weights: words for `train`, to be followed by --output_dir.
TRAIN=(train --model gpt_tiny model.n_layer=1 model.n_embd=32 model.n_head=2 model.n_positions=16
  --batch_size 2 --max_steps 12 --save_steps 6 --max_eval_samples 8 --num_threads 1 --num_workers 1
  --no-tensorboard --device cpu)

digest_of() { sed -n 's/.*"state_digest": *"\([0-9a-f]*\)".*/\1/p' "$1/result.json"; }
expect_same() {  # expect_same A B
  local a b
  a=$(digest_of "$1"); b=$(digest_of "$2")
  [ -n "$a" ] && [ "$a" = "$b" ] || fail "$2 ended with state '$b', $1 with '$a'"
}
expect_code() { [ "$1" = "$2" ] || fail "$3: exit code $1, expected $2"; }
control() {  # control N: the same run under our own launcher
  "$ASSAY" launch --nproc-per-node "$1" -- "${TRAIN[@]}" --output_dir "control$1" >"control$1.log" 2>&1
  expect_code $? 0 "control of $1 ranks"
}
wait_for() {  # wait_for SECONDS COMMAND...
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done
}

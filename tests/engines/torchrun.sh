#!/bin/bash
# The trainer starts unchanged under PyTorch's own launcher, and resumes in its restarts.
. "$(dirname "$0")/common.sh"

# PyTorch's launcher out of the LibTorch that we build on (the wheel holds its Python part too),
# with the few packages that it imports in an environment of the build folder.
own_torchrun() {
  local venv="$BUILD_BIN/../tests/torchrun-venv"
  [ -n "${ASSAY_LIBTORCH:-}" ] && [ -f "$ASSAY_LIBTORCH/torch/distributed/run.py" ] || return 1
  if [ ! -x "$venv/torchrun" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv" && "$venv/bin/pip" -q install typing_extensions filelock sympy \
      networkx jinja2 fsspec || return 1
    echo "$ASSAY_LIBTORCH" >"$(echo "$venv"/lib/python3*/site-packages)/libtorch.pth"
    printf '#!/bin/sh\nexec "%s" -m torch.distributed.run "$@"\n' "$venv/bin/python" >"$venv/torchrun"
    chmod +x "$venv/torchrun"
  fi
  "$venv/torchrun" --help >/dev/null && echo "$venv/torchrun"
}

TORCHRUN=${ASSAY_TORCHRUN:-$(command -v torchrun || own_torchrun 2>torchrun-venv.log)}
[ -n "$TORCHRUN" ] || skip "no torchrun, and none could be set up: $(tail -n 1 torchrun-venv.log)"
# The same worker under both launchers: environments and log trees.
ASSAY_TORCHRUN=$TORCHRUN "$BUILD_BIN/../tests/launch_program_tests" --gtest_filter='Torchrun.*' \
  >compared.log 2>&1 || fail "environment or log tree differ from torchrun's"
grep -q 'PASSED.* [1-9]' compared.log && ! grep -q SKIPPED compared.log || fail "nothing compared"
control 2
for rdzv in "--standalone" "--master-addr 127.0.0.1 --master-port $((21000 + RANDOM % 9000))"; do
  rm -rf run
  "$TORCHRUN" --no-python $rdzv --nproc-per-node 2 "$BUILD_BIN/assay-train" "${TRAIN[@]}" \
    --output_dir run >torchrun.log 2>&1
  expect_code $? 0 "torchrun $rdzv"
  expect_same control2 run
done
rm -rf run
ASSAY_FAULTS="train.backward@1:9=kill" "$TORCHRUN" --no-python --standalone --nproc-per-node 2 \
  --max-restarts 1 "$BUILD_BIN/assay-train" "${TRAIN[@]}" --output_dir run >restart.log 2>&1
# The fault is armed in the second attempt too, but there the ninth backward never comes.
expect_code $? 0 "torchrun with a restart"
expect_same control2 run
"$TORCHRUN" --no-python --standalone --nproc-per-node 2 "$BUILD_BIN/assay-train" train \
  --leraning_rate 1 >usage.log 2>&1 && fail "torchrun took a wrong option for success"
grep -q 'did you mean' usage.log || fail "torchrun does not show our error"
echo "PASS"

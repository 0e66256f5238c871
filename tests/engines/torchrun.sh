#!/bin/bash
# The trainer starts unchanged under PyTorch's own launcher, and resumes in its restarts.
. "$(dirname "$0")/common.sh"
TORCHRUN=${ASSAY_TORCHRUN:-torchrun}
need "$TORCHRUN"
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

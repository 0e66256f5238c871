#!/bin/bash
# What `assay estimate` predicts for two ranks against two real ones, on hosts (network namespaces)
# whose way out carries 50 Mbit/s: two sizes of all-reduce are fitted, the step is not. The whole
# table is bench/scaling_check.cpp's.
. "$(dirname "$0")/common.sh"
need ip
need tc
need_root
# Exit code 8: no namespaces here, or a machine too busy for one rank alone to be repeatable.
"$BUILD_BIN/bench_scaling_check" "$BUILD_BIN/assay-train" mbit=50 stall_ms=60 steps=8 ranks=2 \
  jobs=96:0.4 fit=64,112 >scaling.log 2>&1
CODE=$?
cat scaling.log
[ $CODE = 8 ] && skip "$(tail -n 1 scaling.log)"
expect_code $CODE 0 "the prediction"
[ "$(grep -c '"event":"check"' scaling.log)" = 2 ] || fail "not every row was checked"
echo "PASS"

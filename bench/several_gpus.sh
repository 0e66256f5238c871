#!/bin/bash
# What several GPUs of one host must show, by one command: NCCL's result, faults, resumes on other
# numbers of ranks, and scaling. One JSON line a check; ends with 6 if one fails, 8 without a GPU.
#
#   bench/several_gpus.sh ASSAY [RANKS=all GPUs]
#
# With one GPU the checks that need two are left out and named.
set -u
assay=$(realpath "${1:?usage: bench/several_gpus.sh ASSAY [RANKS]}")
gpus=$(nvidia-smi --list-gpus 2>/dev/null | wc -l)
ranks=${2:-$gpus}
[ "$gpus" -ge 1 ] && [ "$ranks" -ge 1 ] || { echo "no GPU here" >&2; exit 8; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 8
bad=0

# report NAME pass|fail|left_out DETAIL
report() {
  printf '{"check":"%s","ranks":%s,"result":"%s","detail":"%s"}\n' "$1" "$ranks" "$2" "$3"
  [ "$2" != fail ] || bad=1
}
digest() { sed -n 's/.*"state_digest": *"\([0-9a-f]*\)".*/\1/p' "$1/result.json" 2>/dev/null; }
last_loss() { grep -v '"event"' "$1/metrics.jsonl" | tail -n 1 | sed 's/.*"loss":\([0-9.]*\).*/\1/'; }
# median RUN FIELD: over the steps after the first eight
median() {
  grep -v '"event"' "$1/metrics.jsonl" | tail -n +9 | sed "s/.*\"$2\":\([0-9.e+-]*\).*/\1/" | sort -g |
    awk '{ v[NR] = $1 } END { printf "%.3f", NR ? v[int((NR + 1) / 2)] : 0 }'
}
global=$((8 * ranks))
small=(train --model gpt_tiny --max_steps 40 --save_steps 20 --max_eval_samples 64 --deterministic
  --device cuda --no-tensorboard)
launch() {  # launch RANKS LOG WORDS...
  local n=$1 log=$2
  shift 2
  "$assay" launch --nproc-per-node "$n" -- "$@" >"$log" 2>&1
}
same() { [ -n "$(digest "$1")" ] && [ "$(digest "$1")" = "$(digest "$2")" ]; }

launch "$ranks" a.log "${small[@]}" --batch_size 8 --output_dir a
code=$?
over=$(grep -o 'rank(s) over [a-z]*' a.log | head -n 1)
[ $code = 0 ] && [ "$over" = "rank(s) over nccl" ] && report nccl pass "$over" ||
  report nccl fail "code $code, $over"
"$assay" "${small[@]}" --batch_size "$global" --output_dir one >one.log 2>&1
# Sums in another order in float32: 40 steps of a loss near 3.
difference=$(awk -v a="$(last_loss a)" -v b="$(last_loss one)" 'BEGIN { d = a - b; print d < 0 ? -d : d }')
awk -v d="$difference" 'BEGIN { exit !(d < 2e-3) }' && report equals_one_rank pass "loss differs by $difference" ||
  report equals_one_rank fail "loss differs by $difference"

victim=$((ranks - 1))
ASSAY_FAULTS="train.backward@$victim:30=kill" launch "$ranks" k.log "${small[@]}" --batch_size 8 --output_dir k
code=$?
launch "$ranks" k2.log "${small[@]}" --batch_size 8 --output_dir k --resume_from_checkpoint auto
[ $code = 137 ] && same a k && report kill_and_resume pass "code $code, same state" ||
  report kill_and_resume fail "code $code, $(tail -n 1 k2.log | tr -d '"')"

launch "$ranks" z.log "${small[@]}" --batch_size 8 --zero1 true --output_dir z
same a z && report zero1 pass "same state as plain" || report zero1 fail "$(tail -n 1 z.log | tr -d '"')"

if [ "$ranks" -ge 2 ]; then
  for fault in "train.forward@1:10=stop" "train.backward@1:10=stall:600" "defect.skip_collective@1:9=on" \
    "train.optimizer@1:9=throw"; do
    start=$SECONDS
    ASSAY_FAULTS=$fault launch "$ranks" f.log "${small[@]}" --batch_size 8 --ddp_timeout 5 --output_dir "f$RANDOM"
    code=$?
    named=$(grep -o 'rank [0-9]* (local rank' f.log | tail -n 1)
    detail="code $code after $((SECONDS - start)) s, named: $named"
    [ $code != 0 ] && [ "$named" = "rank 1 (local rank" ] && report "$fault" pass "$detail" ||
      report "$fault" fail "$detail"
  done
  ls f*/flight-record-rank*.json >/dev/null 2>&1 && report flight_record pass "written" ||
    report flight_record fail "no flight-record-rank*.json beside a hung collective"
  half=$((ranks / 2))
  launch "$half" h.log "${small[@]}" --batch_size $((global / half)) --output_dir h --max_steps 20
  cp -r a h2 && rm -rf h2/checkpoint-40
  launch "$half" h2.log "${small[@]}" --output_dir h2 --resume_from_checkpoint h2/checkpoint-20 &&
    report resume_on_half pass "$(grep -o 'step 40 of 40' h2.log | head -n 1)" ||
    report resume_on_half fail "$(tail -n 1 h2.log | tr -d '"')"
else
  report faults_of_peers left_out "needs two GPUs"
fi

speed=(train --model gpt2 --dataset synthetic --batch_size 16 data.sequence_length=1024 --bf16 --max_steps 40
  --save_steps 0 --eval_steps 100000 --max_eval_samples 2 --device cuda --no-tensorboard)
base=""
for ((n = 1; n <= ranks; n *= 2)); do
  launch "$n" s.log "${speed[@]}" --output_dir "s$n" || { report "gpt2_$n" fail "$(tail -n 1 s.log | tr -d '"')"; break; }
  time=$(median "s$n" time_ms)
  base=${base:-$time}
  efficiency=$(awk -v a="$base" -v b="$time" 'BEGIN { printf "%.3f", a / b }')
  report "gpt2_$n" pass "step $time ms, exposed communication $(median "s$n" comm) ms, efficiency $efficiency"
done
exit $((bad * 6))

#!/bin/sh
# Predicted against measured memory: runs `assay-train estimate --json` and the trainer for models x
# batches x precisions on a GPU and prints one line each. Needs jq or python3 to read JSON; the
# host's column needs python3, which sees the process's highest resident memory, its save included.
#
#   bench/estimate_check.sh TRAINER [STEPS]        (all rows)
#   ROWS="gpt2:16:bf16 resnet50:64:fp32" bench/estimate_check.sh TRAINER
#
# Ends with 6 if a steady peak is predicted more than 5 % too low or 10 % too high. Columns:
# predicted and measured peak of a later step, their ratio, the same for the first step, for memory
# that the allocator takes, and for the host. Float32 convolutions are predicted too low where cuDNN
# found room for a faster kernel.
set -u

trainer=${1:?usage: bench/estimate_check.sh TRAINER [STEPS]}
steps=${2:-12}
rows=${ROWS:-"mnist_cnn:64:fp32 mnist_cnn:1024:bf16 lenet5:256:fp32 vgg16:32:fp32 vgg16:128:bf16
vgg16_bn:64:bf16 resnet18:128:fp32 resnet50:64:fp32 resnet50:256:bf16 resnet20_cifar:512:fp32
mobilenet_v2:128:fp32 mobilenet_v2:256:bf16 vit_b_16:32:fp32 vit_b_16:128:bf16 gpt_tiny:64:fp32
gpt_tiny:256:bf16 gpt2:4:fp32 gpt2:16:fp32 gpt2:16:bf16 gpt2:64:bf16 gpt2_medium:8:bf16
gpt2_large:4:bf16 gpt2_xl:2:bf16"}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

if command -v jq >/dev/null 2>&1; then
  # read_json FILE PATH: e.g. read_json f memory.load_bytes
  read_json() { jq -r ".$2" "$1"; }
else
  read_json() {
    python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."): value = value[key]
print(value)' "$1" "$2"
  }
fi

# with_peak FILE COMMAND...: runs it and writes its highest resident memory in bytes to FILE
if command -v python3 >/dev/null 2>&1; then
  with_peak() {
    python3 -c 'import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
open(sys.argv[1], "w").write(str(peak))
sys.exit(code)' "$@"
  }
else
  with_peak() { echo 0 >"$1"; shift; "$@"; }
fi

# field LINE NAME: a whole number out of a line of metrics.jsonl
field() { printf '%s\n' "$1" | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p"; }

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.3f", a / b; else printf "-" }'; }

printf '%-16s %6s %-5s %15s %15s %7s %7s %8s %7s\n' model batch type predicted_peak \
  measured_peak ratio first reserved host
for row in $rows; do
  model=${row%%:*}
  rest=${row#*:}
  batch=${rest%%:*}
  precision=${rest#*:}
  options="--model=$model --dataset=synthetic --batch_size=$batch --device=cuda"
  [ "$precision" = fp32 ] || options="$options --$precision"
  rm -rf "$work/run" "$work/estimate.json"
  # shellcheck disable=SC2086  # options are words
  "$trainer" estimate $options --json >"$work/estimate.json" 2>"$work/log"
  status=$?
  if [ $status -ne 0 ] && [ $status -ne 6 ]; then
    echo "$row: estimate ended with $status: $(tail -n 1 "$work/log")"
    bad=1
    continue
  fi
  # shellcheck disable=SC2086
  if ! with_peak "$work/rss" "$trainer" train $options --output_dir="$work/run" \
    --max_steps="$steps" --save_steps=0 --max_eval_samples=1 --no-tensorboard \
    data.synthetic_samples=$((batch * 4)) \
    >"$work/log" 2>&1; then
    echo "$row: the run failed: $(tail -n 1 "$work/log")"
    bad=1
    continue
  fi
  grep -v '"event"' "$work/run/metrics.jsonl" >"$work/steps"
  first=$(sed -n 1p "$work/steps")
  # The largest of the later steps; the first ones try convolution algorithms.
  peak=0
  while read -r line; do
    here=$(field "$line" peak_allocated_bytes)
    [ "$here" -gt "$peak" ] && peak=$here
  done <<EOF
$(sed -n '5,$p' "$work/steps")
EOF
  last=$(tail -n 1 "$work/steps")
  predicted=$(read_json "$work/estimate.json" memory.steady_peak_bytes)
  steady=$(ratio "$predicted" "$peak")
  printf '%-16s %6s %-5s %15s %15s %7s %7s %8s %7s\n' "$model" "$batch" "$precision" \
    "$predicted" "$peak" "$steady" \
    "$(ratio "$(read_json "$work/estimate.json" memory.first_step_peak_bytes)" \
      "$(field "$first" peak_allocated_bytes)")" \
    "$(ratio "$(read_json "$work/estimate.json" memory.reserved_bytes)" \
      "$(field "$last" reserved_bytes)")" \
    "$(ratio "$(read_json "$work/estimate.json" host_memory.total_bytes)" \
      "$(cat "$work/rss")")"
  awk -v r="$steady" 'BEGIN { exit !(r >= 0.95 && r <= 1.10) }' || bad=1
done
[ $bad -eq 0 ] || exit 6

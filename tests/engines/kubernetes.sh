#!/bin/bash
# The Kubernetes examples: their pods fit Kubernetes' own schema, and the containers' commands, with
# the variables that the operators document, are one training run. There is no cluster here: pods are
# processes on loopback, with small models in place of the large one.
. "$(dirname "$0")/common.sh"
EXAMPLES="$(cd "$HERE/../../docs/examples" && pwd)"
VENV="$BUILD_BIN/../tests/kubernetes-venv"
if ! "$VENV/bin/python" -c 'import kubernetes_validate, yaml' 2>/dev/null; then
  rm -rf "$VENV"
  { python3 -m venv "$VENV" && "$VENV/bin/pip" -q install kubernetes-validate pyyaml; } \
    >venv.log 2>&1 || skip "kubernetes-validate cannot be installed: $(tail -n 1 venv.log)"
fi
"$VENV/bin/python" "$HERE/kubernetes_pods.py" "$EXAMPLES" pods \
  >pods.log 2>&1 || fail "an example is not what Kubernetes takes"

PATH="$BUILD_BIN:$PATH"
# The examples name a model that trains for days: the same words with a small one.
small() {
  local word
  for word in "$@"; do
    case $word in
      --model=* | --dataset=* | --data_dir=* | --max_steps=* | --output_dir=*) ;;
      train) printf '%s\n' "${TRAIN[@]}" --output_dir "$RUN" ;;
      *) printf '%s\n' "$word" ;;
    esac
  done
}
run_pods() {  # run_pods NAME: every pod's command with its variables, at the same time
  local pod words pids=() port=$((20000 + RANDOM % 9000))
  RUN="$WORK/$1"
  for pod in pods/"$1"/*; do
    mapfile -t words < <(mapfile -t all <"$pod/command"; small "${all[@]}")
    mapfile -t variables < <(sed "s/@PORT@/$port/" "$pod/environment")
    env "${variables[@]}" "${words[@]}" >"$1-$(basename "$pod").log" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid"
    expect_code $? 0 "a pod of $1"
  done
}
control 4
run_pods pytorchjob
expect_same control4 pytorchjob
run_pods trainjob
expect_same control4 trainjob
echo "PASS"

#!/bin/bash
# The trainer starts unchanged under srun; sbatch's early signal saves, a requeued job goes on. A
# controller and two node daemons run in a network namespace of their own for the time of the test.
. "$(dirname "$0")/common.sh"
for tool in slurmctld slurmd srun sbatch scontrol munged ip nsenter setpriv; do need $tool; done
need_root
NS=ays$$
ip netns add "$NS" 2>/dev/null || skip "network namespaces are not allowed here"
CLEANUPS+=("ip netns del $NS" "ip netns pids $NS | xargs -r kill -9")
# Not `ip netns exec`, which hides /sys/fs/cgroup from the daemons.
in_ns() { nsenter --net="/run/netns/$NS" "$@"; }
in_ns ip link set lo up
# A name resolves only where some address beside loopback is there.
in_ns ip link add "${NS}1" type veth peer name "${NS}2" || skip "no veth here"
in_ns ip addr add 10.79.0.1/24 dev "${NS}1"
in_ns ip link set "${NS}1" up; in_ns ip link set "${NS}2" up
HOST=$(hostname -s)
printf '127.0.0.1 localhost\n10.79.0.1 %s n1 n2\n' "$HOST" >hosts
mkdir -p etc state spool-n1 spool-n2 munge
dd if=/dev/urandom of=munge/key bs=1024 count=1 2>/dev/null
chown -R munge:munge munge 2>/dev/null || skip "there is no user munge"
chmod 700 munge; chmod 600 munge/key; chmod 755 "$WORK"
cat >etc/slurm.conf <<CONF
ClusterName=assay
SlurmctldHost=$HOST(10.79.0.1)
SlurmctldPort=7817
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$WORK/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$WORK/state
SlurmdSpoolDir=$WORK/spool-%n
SlurmctldPidFile=$WORK/slurmctld.pid
SlurmdPidFile=$WORK/slurmd-%n.pid
SlurmctldLogFile=$WORK/slurmctld.log
SlurmdLogFile=$WORK/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
KillWait=20
NodeName=n1 NodeHostname=$HOST NodeAddr=10.79.0.1 Port=7001 CPUs=2 State=UNKNOWN
NodeName=n2 NodeHostname=$HOST NodeAddr=10.79.0.1 Port=7002 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
CONF
export SLURM_CONF="$WORK/etc/slurm.conf"
# Every daemon and client sees our hosts file and is in the namespace.
SEE_HOSTS="mount --bind '$WORK/hosts' /etc/hosts && exec \"\$@\""
inside() { in_ns unshare -m sh -c "$SEE_HOSTS" sh "$@"; }
start() {  # start LOG COMMAND...: a daemon in the foreground, ended by its id at the end
  local log=$1; shift
  (exec nsenter --net="/run/netns/$NS" unshare -m sh -c "$SEE_HOSTS" sh "$@") >"$log" 2>&1 &
  CLEANUPS+=("kill $!; wait $!")
}
start munged.log setpriv --reuid=munge --regid=munge --clear-groups munged --foreground --force \
  --socket="$WORK/munge/socket" --key-file="$WORK/munge/key" --pid-file="$WORK/munge/pid" \
  --log-file="$WORK/munge/log" --seed-file="$WORK/munge/seed"
wait_for 10 test -S munge/socket || fail "munged did not start"
start ctld-out.log slurmctld -D
for node in n1 n2; do start "$node-out.log" slurmd -D -N $node; done
idle() { [ "$(inside sinfo -h -N -t idle -o %N | sort -u | wc -l)" = 2 ]; }
wait_for 30 idle || fail "the nodes did not come up"

control 2
inside srun -N2 -n2 --ntasks-per-node=1 "$BUILD_BIN/assay-train" "${TRAIN[@]}" \
  --output_dir "$WORK/run" >srun.log 2>&1
expect_code $? 0 "srun"
expect_same control2 run

# The example of docs/examples: Slurm signals ahead of the time limit, all ranks save at one step
# and end with 138, the job is requeued and goes on. Slurm looks at its jobs every 30 s, so 60 s before
# the end of two minutes is 30 to 60 s after the start; the run takes 64 s.
EXAMPLE="$(cd "$HERE/../../docs/examples" && pwd)/slurm.sbatch"
cp "$EXAMPLE" job.sh
LONG=(--model gpt_tiny model.n_layer=1 model.n_embd=32 model.n_head=2 model.n_positions=16
  --batch_size 2 --max_steps 400 --save_steps 0 --max_eval_samples 8 --num_threads 1
  --num_workers 1 --no-tensorboard --device cpu)
ASSAY_TRAIN="$BUILD_BIN/assay-train" ASSAY_FAULTS="train.step_end:1+=stall:0.16" inside sbatch \
  --ntasks-per-node=1 --gpus-per-node=0 --cpus-per-task=1 --time=2 --signal=USR1@60 \
  --output="$WORK/sbatch-%j.log" job.sh "${LONG[@]}" --output_dir "$WORK/long" >sbatch.log 2>&1
JOB=$(sed -n 's/.*job \([0-9]*\).*/\1/p' sbatch.log)
[ -n "$JOB" ] || fail "sbatch took no job"
started() { [ "$(wc -l <long/metrics.jsonl)" -gt 20 ]; }
wait_for 60 started || fail "the batch job did not start"
stopped() { grep -q '"status": *"stopped"' long/result.json; }
wait_for 120 stopped || fail "Slurm's signal left no stopped run"
grep -q '"exit_code": *138' long/result.json || fail "the run did not end with 138 after SIGUSR1"
completed() { grep -q '"status": *"completed"' long/result.json; }
wait_for 240 completed || fail "the requeued job did not complete"
inside scontrol show job "$JOB" | grep -q 'Requeue=1 Restarts=[1-9]' || fail "it was not requeued"
"$ASSAY" launch --nproc-per-node 2 -- train "${LONG[@]}" --output_dir whole >whole.log 2>&1
expect_same whole long
echo "PASS"

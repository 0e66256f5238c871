#!/bin/bash
# Two hosts with two ranks each, as network namespaces joined by a veth pair: plain, with a thin
# line, with loss, with a delay, IPv6 only, with a host name that resolves to 127.0.1.1, with an interface that
# leads nowhere, and with a master that is not there.
. "$(dirname "$0")/common.sh"
need ip
need_root
TAG=ay$$
A=${TAG}a; B=${TAG}b
ip netns add "$A" 2>/dev/null || skip "network namespaces are not allowed here"
CLEANUPS+=("ip netns del $A"); ip netns add "$B"; CLEANUPS+=("ip netns del $B")
ip link add "${TAG}1" netns "$A" type veth peer name "${TAG}2" netns "$B" || skip "no veth here"
in_a() { ip netns exec "$A" "$@"; }
in_b() { ip netns exec "$B" "$@"; }
in_a ip addr add 10.77.0.1/24 dev "${TAG}1"; in_a ip -6 addr add fd77::1/64 dev "${TAG}1" nodad
in_b ip addr add 10.77.0.2/24 dev "${TAG}2"; in_b ip -6 addr add fd77::2/64 dev "${TAG}2" nodad
for link in lo "${TAG}1"; do in_a ip link set "$link" up; done
for link in lo "${TAG}2"; do in_b ip link set "$link" up; done
control 4

# job NAME ENDPOINT [options]: both nodes; sets CODE_A and CODE_B
job() {
  local name=$1 endpoint=$2; shift 2
  rm -rf "$name"
  in_b "$ASSAY" launch --nnodes 2 --node-rank 1 --nproc-per-node 2 --rdzv-endpoint "$endpoint" \
    --rdzv-conf join_timeout=20 -- "${TRAIN[@]}" --output_dir "$name" "$@" >"$name-b.log" 2>&1 &
  local b=$!
  in_a "$ASSAY" launch --nnodes 2 --node-rank 0 --nproc-per-node 2 --rdzv-endpoint "$endpoint" \
    --rdzv-conf join_timeout=20 -- "${TRAIN[@]}" --output_dir "$name" "$@" >"$name-a.log" 2>&1
  CODE_A=$?
  wait $b; CODE_B=$?
}
expect_run() {  # expect_run NAME ENDPOINT [options]
  job "$@"
  expect_code $CODE_A 0 "$1, node 0"; expect_code $CODE_B 0 "$1, node 1"
  expect_same control4 "$1"
}

expect_run plain 10.77.0.1:29411
expect_run ipv6 "[fd77::1]:29412"
if in_a tc qdisc add dev "${TAG}1" root tbf rate 20mbit burst 32kbit latency 400ms 2>/dev/null; then
  expect_run thin 10.77.0.1:29413
  in_a tc qdisc del dev "${TAG}1" root
fi
if command -v nft >/dev/null && in_b nft add table inet "$TAG" 2>/dev/null; then
  in_b nft add chain inet "$TAG" in "{ type filter hook input priority 0; }"
  in_b nft add rule inet "$TAG" in iifname "${TAG}2" numgen random mod 100 \< 2 drop
  expect_run lossy 10.77.0.1:29414
  in_b nft delete table inet "$TAG"
fi

# A line of 20 ms each way. The kernel's own emulator is often missing, so a relay carries the frames.
if [ -c /dev/net/tun ] && command -v python3 >/dev/null; then
  python3 "$HERE/delay_relay.py" "$A" "$B" "${TAG}t" 20 >relay.log 2>&1 &
  RELAY=$!
  CLEANUPS+=("kill $RELAY")
  wait_for 10 grep -q ready relay.log || fail "the relay did not start"
  in_a ip addr add 10.79.0.1/24 dev "${TAG}t"; in_b ip addr add 10.79.0.2/24 dev "${TAG}t"
  in_a ip link set "${TAG}t" up; in_b ip link set "${TAG}t" up
  in_b ping -c 1 -W 5 10.79.0.1 >ping.log 2>&1
  expect_run delayed 10.79.0.1:29419
  kill $RELAY
fi

# The master's own name resolves to 127.0.1.1 there, as Debian has it, and rightly elsewhere.
hosts_job() {
  mkdir -p "etc-$1"; printf '127.0.0.1 localhost\n%s assaymaster\n' "$2" >"etc-$1/hosts"
}
hosts_job a 127.0.1.1; hosts_job b 10.77.0.1
named() {  # named a|b NODE_RANK
  ip netns exec "$TAG$1" unshare -m sh -c "mount --bind '$WORK/etc-$1/hosts' /etc/hosts && exec \"\$@\"" sh \
    "$ASSAY" launch --nnodes 2 --node-rank "$2" --nproc-per-node 2 --rdzv-endpoint assaymaster:29415 \
    --rdzv-conf join_timeout=20 -- "${TRAIN[@]}" --output_dir named >"named-$1.log" 2>&1
}
named b 1 & NAMED=$!
named a 0; CODE_A=$?
wait $NAMED; CODE_B=$?
expect_code $CODE_A 0 "name of 127.0.1.1, node 0"; expect_code $CODE_B 0 "name of 127.0.1.1, node 1"
expect_same control4 named

# An interface that joins nobody is named within the deadline.
in_b ip link add "${TAG}d" type veth peer name "${TAG}e"; in_b ip link set "${TAG}e" up
in_b ip addr add 10.78.0.2/24 dev "${TAG}d"
in_b ip link set "${TAG}d" up
START=$SECONDS
rm -rf lost
ip netns exec "$B" env GLOO_SOCKET_IFNAME="${TAG}d" "$ASSAY" launch --nnodes 2 --node-rank 1 \
  --nproc-per-node 2 --rdzv-endpoint 10.77.0.1:29416 -- "${TRAIN[@]}" --output_dir lost \
  >lost-b.log 2>&1 & LOST=$!
in_a "$ASSAY" launch --nnodes 2 --node-rank 0 --nproc-per-node 2 --rdzv-endpoint 10.77.0.1:29416 \
  -- "${TRAIN[@]}" --output_dir lost >lost-a.log 2>&1
expect_code $? 5 "an interface that leads nowhere"
wait $LOST; expect_code $? 5 "an interface that leads nowhere, node 1"
grep -q "cannot reach" lost-a.log lost-b.log || fail "nobody says who cannot be reached"
[ $((SECONDS - START)) -le 30 ] || fail "an interface that leads nowhere took $((SECONDS - START)) s"

# A master that is not there.
START=$SECONDS
in_b "$ASSAY" launch --nnodes 2 --node-rank 1 --nproc-per-node 1 --rdzv-endpoint 10.77.0.9:29417 \
  --rdzv-conf join_timeout=5 -- "${TRAIN[@]}" --output_dir none >none.log 2>&1
expect_code $? 5 "a master that is not there"
grep -q "10.77.0.9" none.log || fail "the missing master is not named"
[ $((SECONDS - START)) -le 30 ] || fail "a missing master took $((SECONDS - START)) s"

# A killed rank on the other host: both nodes end, with its code and name.
ASSAY_FAULTS="train.forward@3:4=kill" job killed 10.77.0.1:29418
expect_code $CODE_A 137 "a killed rank, node 0"; expect_code $CODE_B 137 "a killed rank, node 1"
grep -q "rank 3 " killed-a.log || fail "node 0 does not name rank 3"
echo "PASS"

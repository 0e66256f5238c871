#!/bin/bash
# The trainer starts unchanged under Open MPI's mpirun; two jobs at once do not meet.
. "$(dirname "$0")/common.sh"
need mpirun
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun --version 2>/dev/null | grep -q "Open MPI" || skip "mpirun is not Open MPI's"
control 2
# A folder of its own for each job: two mpirun that start together trip over Open MPI's common one.
mpi() {
  TMPDIR=$(mktemp -d -p "$WORK") mpirun --oversubscribe -np 2 "$BUILD_BIN/assay-train" "${TRAIN[@]}" "$@"
}
mpi --output_dir first >first.log 2>&1 &
FIRST=$!
mpi --output_dir second >second.log 2>&1
expect_code $? 0 "second job"
wait $FIRST
expect_code $? 0 "first job"
expect_same control2 first
expect_same control2 second
# The example of docs/examples, with a host file.
EXAMPLE="$(cd "$HERE/../../docs/examples" && pwd)/mpi.sh"
echo "localhost slots=2" >hostfile
ASSAY_TRAIN="$BUILD_BIN/assay-train" "$EXAMPLE" hostfile "${TRAIN[@]:1}" --output_dir example \
  >example.log 2>&1
expect_code $? 0 "the example"
expect_same control2 example
ASSAY_FAULTS="train.forward@1:3=exit:3" mpirun --oversubscribe -np 2 -x ASSAY_FAULTS \
  "$BUILD_BIN/assay-train" "${TRAIN[@]}" --output_dir failing >failing.log 2>&1
expect_code $? 3 "a rank that ends with 3"
echo "PASS"

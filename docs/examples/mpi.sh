#!/bin/bash
# One training run under Open MPI, one rank a slot of the host file ("host1 slots=8" a line).
#
#   mpi.sh HOSTFILE configs/gpt2_tokens_pretrain.json --output_dir /shared/runs/gpt2
#
# MPI only starts the ranks; they meet over TCP at rank 0's host. MASTER_ADDR names it where the
# first host of the list is not reached by its own name; ASSAY_TRAIN another program.
set -u
hostfile=$1
shift
exec mpirun --hostfile "$hostfile" --map-by slot ${MASTER_ADDR:+-x MASTER_ADDR} \
  "${ASSAY_TRAIN:-assay-train}" train "$@" --resume_from_checkpoint auto

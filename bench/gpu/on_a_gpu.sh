#!/usr/bin/env bash
# Check and measure this project on one GPU, within nine minutes.
#
#     OUT=results bench/gpu/on_a_gpu.sh
#
# It takes 500 s: checks 140, searches and operators 90, training steps 180, trainings side by side 80.
#
# Each part has a limit of its own and runs whatever became of the others. Findings are printed as they come, and
# written to $OUT at once. With DRY=1 the commands are printed and not run.
cd "$(dirname "$0")/../.." || exit 1
OUT=${OUT:-gpu-results}
mkdir -p "$OUT"
OUT=$(realpath "$OUT") # MPS takes no relative folder
export PYTHONPATH="$PWD:tests/helpers:tests/gpu:${PYTHONPATH:-}" PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
began=$SECONDS
BUDGET=${BUDGET:-505} # seconds; the last part ends by then

part() { # log, limit in seconds, command
  local log=$1 limit=$2
  shift 2
  [ -z "${DRY:-}" ] || { echo "$limit s: $(printf '%q ' "$@")"; return; }
  timeout -k 5 "$limit" "$@" >>"$OUT/$log" 2>&1
  echo "exit $? after $((SECONDS - began)) s: $*" | tee -a "$OUT/$log"
}

if [ -z "${DRY:-}" ]; then
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  python3 -c 'import torch; print("torch", torch.__version__)'
fi

# Correctness: side by side, as no time is measured.
checks() { # number, cases
  local number=$1
  shift
  part "checks-$number.log" 140 python3 bench/gpu/graph_checks.py --only "$@"
  [ ! -e "$OUT/checks-$number.log" ] || grep -h '^[A-Za-z].*{"' "$OUT/checks-$number.log" | sed 's/"losses".*"eager losses": \[[^]]*\], //'
}
checks 1 "base, 8 GPUs" "base, 2 micro-batches" "Weighted Transformer" "broken capture" &
checks 2 "CTC" "attention recogniser" "Cold Fusion" "CTC and attention" &
checks 3 "DL4MT" "ConvS2S" "NTM-RNN-EMB" "language model" "Cold Fusion, translation" &
checks 4 "captured search" "base, compiled layers" "base, Triton kernels" "Weighted Transformer, Triton kernels" &
part triton.log 140 python3 -m pytest -q -p no:cacheprovider tests/models/test_triton_kernels.py &
trainings() { # log, choice of tests
  part "$1" 140 python3 -m pytest -v -s -p no:cacheprovider tests/training/test_on_gpu.py -k "$2"
  [ ! -e "$OUT/$1" ] || tail -n 25 "$OUT/$1"
}
trainings stop-and-resume.log "stopped and not triton" &
trainings triton-trainings.log triton &
trainings two-processes.log two_processes &
wait

# Times: one group after the other, the most wanted first. A group that fails or hangs loses no other's rows.
measure() { # limit in seconds, options of measure.py
  local left=$((BUDGET - (SECONDS - began)))
  ((left > 15)) || { echo "no time left: $*" | tee -a "$OUT/measure.log"; return; }
  part measure.log $((left < $1 ? left : $1)) python3 bench/gpu/measure.py --csv "$OUT/steps.csv" "${@:2}"
}
several() { # trainings at once; the middle of three long blocks, as they begin and end apart
  local number
  for ((number = 0; number < $1; number++)); do
    part several.log 60 python3 bench/gpu/measure.py --csv "$OUT/several-$2.csv" --only-graphs --block 300 \
      --only "tiny Transformer" &
  done
  wait
}
measure 60 --only "beam search, base, 128 sentences" "beam search, base, 512 sentences"
measure 60 --only "operator: cross-entropy" "operator: weighted sum" "operator: causal attention"
measure 70 --only-graphs --only "base, 8 GPUs" "attention recogniser" "Cold Fusion" CTC DL4MT ConvS2S \
  "Weighted Transformer" "tiny Transformer"
measure 60 --only-graphs --only "Weighted Transformer, 1 GPU" "NTM-RNN-EMB, 1280 sentences" \
  "Cold Fusion, 64 utterances of 8 s"
measure 90 --only-graphs --only "base, 1 GPU" "plain PyTorch" "big, 1 GPU"
if ((SECONDS - began < BUDGET - 90)); then
  several 4 "without-mps"
  export CUDA_MPS_PIPE_DIRECTORY=$OUT/mps CUDA_MPS_LOG_DIRECTORY=$OUT/mps
  if [ -z "${DRY:-}" ] && mkdir -p "$OUT/mps" && nvidia-cuda-mps-control -d; then
    several 4 "with-mps"
    echo quit | nvidia-cuda-mps-control
  fi
fi
[ -n "${DRY:-}" ] || cat "$OUT"/*.csv
echo "done after $((SECONDS - began)) s"

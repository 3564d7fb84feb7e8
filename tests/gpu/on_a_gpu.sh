#!/usr/bin/env bash
# Check and measure this project on one GPU, within nine minutes.
#
#     OUT=results tests/gpu/on_a_gpu.sh
#
# Each part has a limit of its own and runs whatever became of the others. Findings are printed as they come, and
# written to $OUT at once.
cd "$(dirname "$0")/../.." || exit 1
OUT=${OUT:-gpu-results}
mkdir -p "$OUT"
export PYTHONPATH="$PWD:tests/helpers:${PYTHONPATH:-}" PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
began=$SECONDS

part() { # log, limit in seconds, command
  local log=$1 limit=$2
  shift 2
  timeout -k 5 "$limit" "$@" >>"$OUT/$log" 2>&1
  echo "exit $? after $((SECONDS - began)) s: $*" | tee -a "$OUT/$log"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
python3 -c 'import torch; print("torch", torch.__version__)'

# Correctness: side by side, as no time is measured.
checks() { # number, cases
  local number=$1
  shift
  part "checks-$number.log" 140 python3 tests/gpu/graph_checks.py --only "$@"
  grep -h '^[A-Za-z].*{"' "$OUT/checks-$number.log" | sed 's/"losses".*"eager losses": \[[^]]*\], //'
}
checks 1 "base, 8 GPUs" "base, 2 micro-batches" "Weighted Transformer" "broken capture" &
checks 2 "CTC" "attention recogniser" "Cold Fusion" "CTC and attention" &
checks 3 "DL4MT" "ConvS2S" "NTM-RNN-EMB" "language model" "Cold Fusion, translation" &
checks 4 "base, compiled layers" &
(
  part stop-and-resume.log 140 python3 -m pytest -v -p no:cacheprovider tests/training/test_on_gpu.py
  tail -n 25 "$OUT/stop-and-resume.log"
) &
wait

# Times: one after the other, the most wanted first.
timeout -k 5 $((505 - (SECONDS - began))) python3 tests/gpu/measure.py --json "$OUT/measure.json" --only \
  "base, 8 GPUs" "attention recogniser" "Cold Fusion" CTC DL4MT ConvS2S "Weighted Transformer" "tiny Transformer" \
  "base, 1 GPU" "plain PyTorch, compiled" "Cold Fusion, 64 utterances of 8 s" "Weighted Transformer, 1 GPU" \
  "NTM-RNN-EMB, 1280 sentences" "beam search, Transformer" "plain PyTorch" "big, 1 GPU" \
  2>"$OUT/measure.err" | tee "$OUT/measure.log"
echo "done after $((SECONDS - began)) s"

"""Acquire GPUs as a local job does, print them, and hold them until standard input closes."""

import logging
import os
import subprocess
import sys
import time

from pipeline.cluster.local import acquire_gpus

time.sleep = lambda seconds, sleep=time.sleep: sleep(seconds / 20)  # so it looks for free GPUs 20 times as often
logging.basicConfig(level="INFO", format="%(message)s")
acquire_gpus(int(sys.argv[1]), int(os.environ.get("SHARED_BY", "1")), "ALONE" in os.environ)
print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
if len(sys.argv) > 2:
    print(subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL).pid, flush=True)
sys.stdin.read()

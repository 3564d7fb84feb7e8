"""Fork the processes of a distributed training on this machine."""

import os
import traceback
from collections.abc import Callable

from pipeline.cluster.local import free_port


def fork_ranks(size: int, work: Callable[[int], None]) -> list[int]:
    """Fork `size` processes with torch.distributed's variables.

    Args:
        size: Number of processes.
        work: Called in each process with its rank. The exit code is that of its SystemExit, 0 if it returns, else 1.

    Returns:
        Process ids, by rank.
    """
    port = free_port()
    return [os.fork() or run_rank(rank, size, port, work) for rank in range(size)]


def run_rank(rank: int, size: int, port: int, work: Callable[[int], None]) -> int:
    code = 1
    try:
        os.environ |= {"WORLD_SIZE": str(size), "RANK": str(rank), "LOCAL_RANK": str(rank)}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        work(rank)
        code = 0
    except SystemExit as stop:
        code = stop.code
    except Exception:
        traceback.print_exc()  # a forked process leaves without pytest's report
    finally:
        os._exit(code)

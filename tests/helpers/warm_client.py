"""Stand in for `python`, `snakemake` and `reprise`: hand a command of the project to the warm server.

Copies of this file lie beside the server's socket. What is no module of the project, of Snakemake,
of submitit's jobs or of a test runs in a new interpreter.
"""

import json
import os
import signal
import socket
import sys

MODULES = ("pipeline", "reprise", "snakemake", "pipeline.cluster.job_process", "submitit.core._submit", "take_gpus")
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def main() -> None:
    folder, name = os.path.split(os.path.abspath(sys.argv[0]))
    words = sys.argv[1:] if name == "python" else ["-m", name, *sys.argv[1:]]
    if words[:1] == ["-u"]:
        words, os.environ["PYTHONUNBUFFERED"] = words[1:], "1"
    if words[:1] != ["-m"] or words[1] not in MODULES:
        os.execv(sys.executable, [sys.executable, *words])
    os.umask(mask := os.umask(0))
    order = {
        "module": words[1],
        "arguments": words[2:],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "program": os.path.join(folder, "python"),
        "mask": mask,
    }
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(os.path.join(folder, "socket"))
        data = json.dumps(order).encode()
        socket.send_fds(server, [len(data).to_bytes(8, "big")], [0, 1, 2])
        server.sendall(data)
        answers = server.makefile()
        pid = int(answers.readline())
        for number in FORWARDED:
            signal.signal(number, lambda number, _: os.kill(pid, number))
        status = int(answers.readline() or -signal.SIGKILL)
    if status < 0:
        if status != -signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main()

"""Runs a program on a case in a folder of its own, and measures what it took."""
import os, resource, signal, subprocess, tempfile, time
from dataclasses import dataclass

KEPT = "kept: an output that a failed run must leave as it is\n"


@dataclass
class Run:
    status: int  # negative: the signal
    cpu: float  # user and system
    user: float
    wall: float  # without the time that the main thread waited for a processor
    peak: int  # bytes of memory at most
    error: str
    output: str  # "" where it is missing
    left: list  # names of files that should not be there
    killed: bool  # it did not end by itself


def lay_out(case, folder):
    for name, content in {"model.json": case.model, **case.files}.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())


def waited_for_processor(pid):
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
            return int(f.read().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0


def run(program, case, options, output, longest, most_cpu=None):
    """`options` follow the case's own; `output` is the name of the file that they write. A run ends after `longest` seconds,
    and after `most_cpu` seconds of processor time."""
    limit_cpu = most_cpu and (lambda: resource.setrlimit(resource.RLIMIT_CPU, (most_cpu, most_cpu + 1)))
    with tempfile.TemporaryDirectory() as folder:
        lay_out(case, folder)
        with open(os.path.join(folder, output), "w", encoding="utf-8") as f:
            f.write(KEPT)
        expected = {"model.json", output, "stderr", *case.files}
        with open(os.path.join(folder, "stderr"), "wb") as stderr:
            start = time.monotonic()
            child = subprocess.Popen([program, "model.json", *case.arguments, *options], cwd=folder, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=stderr, preexec_fn=limit_cpu)
        killed, pause = False, 0.001
        while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            if not killed and time.monotonic() - start > longest:
                child.send_signal(signal.SIGKILL)
                killed = True
            time.sleep(pause)
            pause = min(pause * 1.2, 0.01)
        wall = time.monotonic() - start - waited_for_processor(child.pid)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        with open(os.path.join(folder, "stderr"), encoding="utf-8", errors="replace") as f:
            error = f.read(20000)
        path = os.path.join(folder, output)
        text = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as f:
                text = f.read()
        return Run(child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_utime, wall, usage.ru_maxrss * 1024, error, text,
                   sorted(set(os.listdir(folder)) - expected), killed)

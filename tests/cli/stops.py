"""Stops runs of `vpps train`: each goes on from its checkpoint until it ends, and must end with the same bits as a run that nothing stopped.

    stops.py VPPS SEED STOPS OPTION...    # a command line of `vpps train` after its name, without files

Half of the stops are kills; the others interrupt. The log tells when: after a line of it that is drawn, and a moment. Then one
interrupts the run while it writes the line before an evaluation.
"""
import fcntl
import glob
import json
import os
import random
import signal
import subprocess
import sys
import time

vpps, seed, stops, options = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
draw = random.Random(seed)


def start(part, more=(), **pipes):
    """Starts or resumes a run. Its standard output is the log, then the summary."""
    files = [f"--save={part}.ckpt", f"--save-best={part}-best.ckpt", f"--plot={part}.svg", "--log=/dev/stdout"]
    begin = [f"--resume={part}.ckpt"] if os.path.exists(f"{part}.ckpt") else [*options, "--force"]
    return subprocess.Popen([vpps, "train", *begin, *files, "--quiet", *more], **pipes)


def finish(part):
    with start(part, stdout=subprocess.PIPE) as run:
        lines = run.communicate()[0].splitlines()
    assert run.returncode == 0, run.returncode
    return [json.loads(line)["event"] for line in lines]


def stop(part, line, moment, how):
    with start(part, stdout=subprocess.PIPE) as run:
        for number, _ in enumerate(run.stdout):
            if number == line:
                time.sleep(moment)
                run.send_signal(how)
    assert run.returncode in (0, 130, -signal.SIGKILL), run.returncode


def asleep(pid):
    """Whether all threads of a process wait."""
    for task in glob.glob(f"/proc/{pid}/task/*/stat"):
        with open(task, encoding="ascii", errors="replace") as file:
            if file.read().rpartition(")")[2].split()[0] != "S":
                return False
    return True


def stop_before_evaluation(part, batches):
    """Interrupts a run while it writes the log's line of an epoch's last batch, its first one: the full pipe has no room for it until then."""
    reads, writes = os.pipe()
    fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
    with start(part, [f"--log-every={batches}"], stdout=writes) as run:
        while os.read(reads, 1) != b"\n":
            pass
        os.set_blocking(writes, False)
        try:
            while os.write(writes, b"\n"):
                pass
        except BlockingIOError:
            os.set_blocking(writes, True)
        looks = 0
        while looks < 10:
            time.sleep(0.01)
            looks = looks + 1 if asleep(run.pid) else 0
        run.send_signal(signal.SIGINT)
        os.close(writes)
        while os.read(reads, 4096):
            pass
    os.close(reads)
    assert run.returncode in (0, 130), run.returncode


def same(part):
    for name in (".ckpt", "-best.ckpt", ".svg"):
        with open(f"whole{name}", "rb") as a, open(f"{part}{name}", "rb") as b:
            assert a.read() == b.read(), f"{part}{name}"


log = finish("whole")
first = log.index("batch")
for _ in range(stops):
    line, moment = draw.randrange(len(log) - 1 - first), draw.choice((0, 0.001, 0.004))
    how = draw.choice((signal.SIGKILL, signal.SIGINT))
    print(f"seed {seed}: {how.name} after line {line} of batches and {moment} s", flush=True)
    stop("part", first + line, moment, how)
    finish("part")
    same("part")
    for name in glob.glob("part*"):
        os.remove(name)
stop_before_evaluation("before", log.index("epoch") - first)
finish("before")
same("before")

"""Reads checkpoints and logs, for the conditions of tests in shell (`holds` in common.sh). As a program: runs statements for common.sh's python3."""
import json
import os
import random
import resource
import select
import struct
import subprocess
import sys
import traceback


def parts(path):
    """Returns a checkpoint's header without the metadata, its metadata, and the bytes of its tensors."""
    with open(path, "rb") as file:
        b = file.read()
    n = 8 + int.from_bytes(b[:8], "little")
    header = json.loads(b[8:n])
    return header, header.pop("__metadata__", {}), bytearray(b[n:])


def recast(source, target, statements, *a):  # a is for the statements
    """Copies a checkpoint. The statements may change its header h, metadata m and the bytes of its tensors `data`, and read a."""
    h, m, data = parts(source)
    exec(statements)
    text = json.dumps({"__metadata__": m} | h).encode()
    text += b" " * (-len(text) % 8)
    with open(target, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def load(path):
    """Returns a checkpoint's tensors by name, as bytes."""
    h, _, data = parts(path)
    return {k: bytes(data[v["data_offsets"][0]:v["data_offsets"][1]]) for k, v in h.items()}


def rows(path, tensor, key):
    """Returns the rows of a checkpoint's tensor by word; the metadata list the words under `key`."""
    words, table = parts(path)[1][key].split("\n"), load(path)[tensor]
    n = parts(path)[0][tensor]["shape"][0]
    assert n <= len(words)
    return {w: table[i * (len(table) // n):(i + 1) * (len(table) // n)] for i, w in enumerate(words[:n])}


def parameters(path):
    """Returns a checkpoint's tensors other than the optimiser's state."""
    return {k: v for k, v in load(path).items() if "/" not in k}


def write_trees(path, n, seed):
    """Writes labelled trees of two classes."""
    draw = random.Random(seed)

    def tree(depth):
        if depth == 0 or draw.random() < 0.3:
            w = draw.choice("abcdefgh")
            return ("0" if w < "e" else "1"), w
        a, b = tree(depth - 1), tree(depth - 1)
        return max(a[0], b[0]), f"({a[0]} {a[1]}) ({b[0]} {b[1]})"
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(n):
            print("(%s %s)" % tree(3), file=file)


def floats(b):
    return list(struct.unpack(f"<{len(b) // 4}f", b))


def apart(a, b):
    """Returns the largest difference of two checkpoints' parameters."""
    a, b = parameters(a), parameters(b)
    assert a.keys() == b.keys()
    return max(abs(x - y) for k in a for x, y in zip(floats(a[k]), floats(b[k])))


def lines(path, event=None):
    """Returns the lines of a JSON-lines file, or, of a log, those of one event."""
    with open(path, encoding="utf-8") as file:
        return [o for o in map(json.loads, filter(str.strip, file)) if event is None or o["event"] == event]


def last(path):
    """Returns the last line of a file, read as JSON; the lines before it need not be JSON."""
    with open(path, encoding="utf-8") as file:
        return json.loads(file.read().splitlines()[-1])


def losses(path):
    """Returns the losses of the batches in a log."""
    return [o["loss"] for o in lines(path, "batch")]


def near(a, b, tolerance=1e-5):
    return len(a) == len(b) and all(abs(x - y) <= tolerance * abs(y) for x, y in zip(a, b))


def answer(vpps, text, *options):
    """Returns what `vpps predict` prints for a text."""
    done = subprocess.run([vpps, "predict", "--vps", "1", *options], input=text.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def ask(vpps, answers, *options):
    """Sends texts to `vpps predict`, each when the answer to the one before, which is given with it, has come. Returns what comes when they end."""
    with subprocess.Popen([vpps, "predict", "--vps", "1", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as p:
        for text, wanted in answers:
            p.stdin.write(text.encode())
            got = b""
            while len(got) < len(wanted) and select.select([p.stdout], [], [], 60)[0]:
                read = p.stdout.read(len(wanted) - len(got))
                assert read, ("vpps predict ended", text, got, wanted)
                got += read
            assert got.decode() == wanted and not select.select([p.stdout], [], [], 0.1)[0], (text, got, wanted)
        p.stdin.close()
        rest = p.stdout.read().decode()
        assert p.wait() == 0
        return rest


def peak(*command):
    """Runs a command on standard input, and returns its and earlier ones' most KiB of memory."""
    assert subprocess.run(command, check=False).returncode == 0
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def run(code, argv):
    """Runs statements like a program of their own, and returns its exit status. Its standard output and error are the process's."""
    sys.argv = ["-", *argv]
    names = {"__name__": "__main__"}
    try:
        exec(code, names)
        return 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        names.clear()  # closes files, whose last lines are in memory, although functions refer to their names


def fields_of(pipe):
    rest = b""
    while read := os.read(pipe, 1 << 16):
        *whole, rest = (rest + read).split(b"\0")
        yield from map(os.fsdecode, whole)


def serve():
    """Answers requests. Each is a folder, how many fields follow, statements and their arguments; its answer is what the statements print to standard
    output and error, and their exit status. Every field ends with a NUL."""
    with open(os.dup(1), "wb") as answers:
        fields = fields_of(os.dup(0))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for folder in fields:
            os.chdir(folder)
            code, *argv = [next(fields) for _ in range(int(next(fields)))]
            files = [os.memfd_create(name) for name in ("out", "err")]
            os.dup2(files[0], 1)
            os.dup2(files[1], 2)
            status = run(code, argv)
            sys.stdout.flush()
            for file in files:
                with open(file, "rb") as printed:
                    printed.seek(0)
                    answers.write(printed.read().replace(b"\0", b"") + b"\0")
            answers.write(b"%d\0" % status)
            answers.flush()


if __name__ == "__main__":
    serve()

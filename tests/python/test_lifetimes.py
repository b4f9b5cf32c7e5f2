"""Tests that objects may be freed in any order and nothing leaks; and tests threads, fork and Ctrl-C."""

import gc
import itertools
import os
import signal
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from small import Small, refused

import vpps


@pytest.fixture
def no_collector():
    """Turns Python's collector of cycles off, so that only counts of references free objects."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_any_order_of_deletion(rng, no_collector):
    for order in itertools.permutations(range(5)):
        net = Small(vps=1).train()
        net.step(net.draw(rng))
        with net.graph:
            loss = net.loss(net.draw(rng))
        values = net.W.value
        things = [net.model, net.graph, net.trainer, net.W.view(), loss]
        gone = [weakref.ref(x) for x in things[:3]]
        del net, loss
        for i in order:
            things[i] = None
            if things[3] is not None and things[2] is None:
                assert (things[3] == values).all()
        assert all(r() is None for r in gone), order


def test_nodes_outlive_their_graph(rng):
    net = Small(vps=1).train()
    with net.graph:
        loss = net.loss(net.draw(rng))
    expected = net.trainer.forward(loss)
    net.graph = None
    assert loss.shape == (1, 1) and net.trainer.forward(loss) == expected


def test_cycles_are_collected(rng):
    """Objects in a cycle are freed, in whatever order Python deletes them."""
    gone = []
    for _ in range(20):
        net = Small().train()
        net.step(net.draw(rng))
        net.cycle = [net, net.model, net.graph, net.trainer, net.W.view()]
        gone.append(weakref.ref(net))
        del net
    gc.collect()
    assert all(r() is None for r in gone)


def test_at_exit(python):
    """The interpreter can end with everything alive, objects in a cycle, and a batch that still runs."""
    python("""
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from small import Small
net = Small(caller="free").train()
net.step(net.draw(np.random.default_rng(1), 32, 20))
net.me = net
""", os.path.dirname(__file__))


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_three_thousand_batches_leave_nothing(rng):
    net = Small(vps=1).train()
    batches = [net.draw(rng, 1, 2) for _ in range(50)]

    def run(n):
        for i in range(n):
            net.step(batches[i % 50])
            if i % 500 == 0:
                net.model.state_dict()
                net.trainer.stats()
        net.trainer.loss()
        gc.collect()

    run(1000)
    before, objects = resident(), len(gc.get_objects())
    run(3000)
    assert len(gc.get_objects()) - objects < 100
    assert resident() - before < 2 << 20


def test_models_leave_nothing(rng):
    def run(n):
        for _ in range(n):
            net = Small(vps=1).train()
            net.step(net.draw(rng, 1, 2))
            del net
        gc.collect()

    run(20)
    before = resident()
    run(50)
    assert resident() - before < 4 << 20


# ---------------------------------------------------------------- threads

def test_models_train_beside_each_other():
    """Threads that each train a model of their own get the same result as one after the other."""

    def train(i):
        net = Small(seed=i + 1, vps=1).train()
        rng = np.random.default_rng(i)
        for _ in range(30):
            net.step(net.draw(rng))
        return net.values()

    alone = [train(i) for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        np.testing.assert_array_equal(list(pool.map(train, range(4))), alone)


def test_two_threads_may_share_a_trainer(rng):
    """Two threads' steps wait for each other. Each thread builds on a graph of its own, while the other's batch runs."""
    net = Small(vps=1, lr=0.0).train()
    batches = [net.draw(rng, 4) for _ in range(4)]
    expected = []
    for b in batches:
        net.step(b)
        expected.append(net.trainer.loss())

    def train(i):
        graph = net.model.graph()
        for _ in range(100):
            with graph:
                loss = net.loss(batches[i])
                net.trainer.step(loss)
                assert abs(float(net.trainer.forward(loss)) - expected[i]) < 1e-5

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(train, range(4)))
    assert net.trainer.stats().batches == 404


def test_threads_that_build_one_graph():
    """A graph is meant for one thread; but if several build it, no node is lost."""
    net = Small(vps=1).train()
    g, n = net.graph, 20000

    def build(_):
        x = g.zeros(2)
        for _ in range(n):
            vpps.tanh(x)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(build, range(4)))
    assert len(g) == 4 * (n + 1)


def test_a_graph_that_a_trainer_reads_is_not_changed(rng):
    """While a step runs, other threads can run too: their changes to the step's graph are refused."""
    net = Small(vps=1).train()
    g = net.graph
    with g:
        loss = net.loss(net.draw(rng))
        v, many = g.vertices([0])[0], g.vertices([0, 1])
    uses = (lambda: vpps.tanh(loss), lambda: loss + 1, lambda: loss.shape, lambda: loss[0], lambda: g.zeros(2), lambda: g.input([1.0]),
            lambda: g.inputs([[1.0]]), lambda: g.source(loss), lambda: g.apply(net.start, indices=[1]),
            lambda: g.apply_one(net.start, indices=[1]), lambda: g.apply_one(net.turn, (v,), pull_lists=[[loss]]),
            lambda: g.loop(net.turn, v, 2), lambda: g.case([]), v.scattered, v.pushed, many.scattered, many.pushed, g.clear,
            g.__enter__, g.cost, g.status, lambda: g.next_vertex, lambda: len(g), lambda: net.trainer.step(loss),
            lambda: net.trainer.forward(loss), lambda: net.trainer.forward(g.nodes([loss.id])))

    net.trainer._call(loss._e, "test", lambda handle, graph: refused(vpps.StateError, "another thread", *uses))
    net.trainer.step(loss)


def long_batch(net, rng, n=400, longest=60):
    batch = net.draw(rng, n, longest)
    with net.graph:
        return net.loss(batch)


def wide():
    return Small(vps=1, hidden=192, caller="works").train()


def test_python_builds_a_graph_while_a_batch_runs(rng):
    """A step releases the interpreter's lock; without this the other thread would get no turn during the step."""
    net = wide()
    loss, other = long_batch(net, rng), net.model.graph()
    turns, end = [], threading.Event()

    def build():
        while not end.is_set():
            with other:
                net.turn(net.start(indices=[1]), indices=[2])
            turns.append(time.perf_counter())

    builder = threading.Thread(target=build)
    builder.start()
    while not turns:
        time.sleep(0.001)
    seen = False
    for _ in range(100):  # a busy machine may give the other thread no core for a while
        turns.clear()
        begin = time.perf_counter()
        net.trainer.step(loss)
        done = time.perf_counter()
        third = (done - begin) / 3
        seen = any(begin + third < t < done - third for t in list(turns))
        if seen:
            break
    end.set()
    builder.join()
    assert seen, "no turn in the middle of any step"


def test_ctrl_c_in_a_batch(rng):
    """KeyboardInterrupt is raised when the batch is done: the batch counts, and training goes on as if nothing had happened."""
    seeds = [np.random.default_rng(5), np.random.default_rng(5)]
    plain, interrupted = wide(), wide()
    loss = long_batch(plain, seeds[0])
    plain.trainer.step(loss)
    loss = long_batch(interrupted, seeds[1])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    delay = 0.005
    while True:
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
            interrupted.trainer.step(loss)
            time.sleep(60)  # if the batch was done before the signal came
        try:
            interrupted.trainer.loss()
            break
        except vpps.StateError:  # the signal came before the batch began
            delay *= 2
    assert interrupted.trainer.stats().batches == 1
    for net, seed in ((plain, seeds[0]), (interrupted, seeds[1])):
        net.step(net.draw(seed, 4))
    np.testing.assert_array_equal(plain.values(), interrupted.values())


def test_fork(rng):
    """After fork a child cannot use its parent's trainer, and says so. It may make its own, and its end harms nobody."""
    net = Small().train()
    net.step(net.draw(rng))
    before = net.values()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with net.graph:
                loss = net.loss(net.draw(rng))
            try:
                net.trainer.step(loss)
            except vpps.StateError as e:
                status = 2 if "fork" in str(e) else 3
            own = Small().train()
            own.step(own.draw(rng))
            own.trainer.loss()
            del net, own
            gc.collect()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    np.testing.assert_array_equal(net.values(), before)
    net.step(net.draw(rng))
    assert (net.values() != before).any()


def test_import_is_quiet(python):
    assert python("import vpps, sys; assert 'torch' not in sys.modules") == ""

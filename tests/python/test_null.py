"""Passes NULL for every pointer of every public function, and for every pointer inside a struct. Nothing may crash, and each function must answer as
the conventions of vpps.h promise."""

import re
from pathlib import Path

import pytest
from vpps._vpps import ffi, lib

ROOT = Path(__file__).parents[2]
NO_ID = 2**32 - 1

# Parameters that may be NULL, of every function or of the one named, as the functions' comments in the headers say.
ALLOWED = {"init", "stale_loss", "loss", "group", "turns", "stream", "comm", "found", "columns", "dependencies", "lines", "parallel", "translation",
           "right", "options", "vpps_backward request", "vpps_kept_shape rows", "vpps_kept_shape cols", "vpps_shard_tables c",
           "vpps_handle_trials out", "vpps_vocab_cut counts", "vpps_sentences_generate lexicon"}

# What functions without a status return for NULL, unless it is zero.
RETURNED = {
    "vpps_communicator_size": 1,
    "vpps_pull_index": NO_ID,
    "vpps_sentences_label": NO_ID,
    "vpps_vocab_find": NO_ID,
}


class Function:
    """A public function, from its prototype in the headers."""

    def __init__(self, returned, name, parameters):
        self.returned, self.name, self.call = returned.strip(), name, getattr(lib, name)
        self.parameters = [re.search(r"(\w+)$", p)[1] for p in parameters.split(",")]
        self.types = ffi.typeof(self.call).args
        self.pointers = {p for p, t in zip(self.parameters, self.types) if t.kind == "pointer"}

    def answer(self, objects, nulls):
        """Calls the function with NULL for these pointers. Returns its result and the error message."""
        objects.renew()
        given = [ffi.NULL if p in nulls else objects.argument(t, p) for p, t in zip(self.parameters, self.types)]
        result = self.call(*given)
        return result, message()

    def wanted(self):
        if self.returned == "vpps_status":
            return lib.VPPS_ARGUMENT
        return RETURNED.get(self.name, NO_ID if self.returned in ("vpps_node", "vpps_vertex") else 0)


class Objects:
    """Valid arguments: a model with a handle, a graph, a recorder, an empty object of each kind of data. Other pointers point to zeros."""

    def __init__(self, path):
        self.made, self.kept, self.file = {}, [], open(path, "w")
        self.model = self.make("vpps_model", lib.vpps_model_create, 1)
        assert lib.vpps_add_vector(self.model, ffi.new("vpps_param *"), b"b", 2, ffi.NULL) == 0
        options = ffi.new("vpps_options *")
        assert lib.vpps_options_init(options, ffi.sizeof("vpps_options")) == 0
        options.vps = 1
        self.handle = self.make("vpps_handle", lib.vpps_handle_create, self.model, options)
        self.graph = self.make("vpps_graph", lib.vpps_graph_create, self.model)
        words = self.make("vpps_vocab", lib.vpps_vocab_create)
        for kind in "treebank", "lattices":
            self.make(f"vpps_{kind}", getattr(lib, f"vpps_{kind}_create"))
        self.make("vpps_constituents", lib.vpps_constituents_create, 0)
        self.make("vpps_spellings", lib.vpps_spellings_create, words)
        self.make("vpps_f1", lib.vpps_f1_create, words)

    def renew(self):
        """Empties the graph, makes a new recorder and sentences, and sets an error message that speaks of no pointer."""
        lib.vpps_graph_clear(self.graph)
        self.made["recorder"] = self.out("vpps_graph", lambda out: lib.vpps_cell_begin(self.model, b"c", out))
        self.make("vpps_sentences", lib.vpps_sentences_create)
        self.made["target"] = self.made["translation"] = self.out("vpps_sentences", lib.vpps_sentences_create)
        assert lib.vpps_param_find(self.model, b"none", ffi.new("vpps_param *")) == lib.VPPS_ARGUMENT

    def out(self, kind, create):
        out = ffi.new(f"{kind} **")
        assert create(out) == 0, message()
        return out[0]

    def make(self, kind, create, *arguments):
        self.made[kind] = self.out(kind, lambda out: create(out, *arguments))
        return self.made[kind]

    def argument(self, kind, name):
        if kind.kind != "pointer":
            return 1
        if kind.item.kind == "pointer":
            return self.keep(ffi.new("void *[16]"), kind)
        target = kind.item.cname.removeprefix("struct ")
        if target == "FILE":
            return self.file
        if name in self.made or target in self.made:
            return self.made.get(name, self.made.get(target))
        if target in ("void", "vpps_communicator"):
            return self.keep(ffi.new("char[4096]"), kind)
        if target == "char":
            return self.keep(ffi.new("char[]", b"x"), kind)
        many = self.keep(ffi.new(f"{kind.item.cname}[16]"), kind)
        if kind.item.kind == "struct" and kind.item.fields[0][0] == "size":
            many[0].size = ffi.sizeof(kind.item)
        return many

    def keep(self, memory, kind):
        self.kept.append(memory)
        return ffi.cast(kind, memory)


def message():
    return ffi.string(lib.vpps_error_message()).decode()


def functions():
    text = "".join(p.read_text() for p in sorted((ROOT / "include").glob("*.h")))
    found = [Function(*match) for match in re.findall(r"^VPPS_API ([^;(]*?)\b(vpps_\w+)\(([^;]*)\);", text, re.MULTILINE)]
    assert len(found) == len(re.findall(r"^VPPS_API ", text, re.MULTILINE)) > 200
    return [f for f in found if f.pointers]


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    return Objects(tmp_path_factory.mktemp("null") / "file")


def is_zero(result):
    if isinstance(result, ffi.CData) and ffi.typeof(result).kind == "struct":
        return not any(bytes(ffi.buffer(ffi.new(f"{ffi.typeof(result).cname} *", result))))
    return result in (0, None, ffi.NULL)


def test_what_may_be_null_is_a_pointer():
    assert ALLOWED <= {name for f in functions() for p in f.pointers for name in (p, f"{f.name} {p}")}


@pytest.mark.parametrize("f", functions(), ids=lambda f: f.name)
def test_functions(f, objects, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    allowed = {p for p in f.pointers if ALLOWED & {p, f"{f.name} {p}"}} if f.name != "vpps_options_init" else set()
    for nulls in [{p} for p in f.pointers] + [f.pointers]:
        result, said = f.answer(objects, nulls)
        if nulls <= allowed:
            assert "NULL" not in said
            continue
        wanted = f.wanted()
        assert is_zero(result) if wanted == 0 else result == wanted, (nulls, result, said)
        if f.returned == "vpps_status" or wanted == NO_ID != RETURNED.get(f.name):
            assert re.search("NULL|no handle given|without data", said), (nulls, said)


# ---------------------------------------------------------------- pointers inside structs and arrays

def cell(objects, record):
    c = objects.out("vpps_graph", lambda out: lib.vpps_cell_begin(objects.model, b"c", out))
    record(c)
    out = ffi.new("vpps_cell *")
    assert lib.vpps_cell_end(c, out) == 0, message()
    return out[0]


def plain_cell(c):
    """Records a cell that takes a child, a node, an index, a list of children and a list of nodes."""
    x = lib.vpps_add(c, lib.vpps_gather(c, 0, 0, 2, 1), lib.vpps_pull(c, 2, 1))
    for many in lib.vpps_gather_list_of(c, 0, 0, 2, 1), lib.vpps_pull_list_of(c, 1, 2, 1):
        x = lib.vpps_add(c, x, lib.vpps_sum(c, 1, [many]))
    lib.vpps_scatter(c, x)
    lib.vpps_push(c, lib.vpps_cross_entropy(c, x, lib.vpps_pull_index(c)))


def case_cell(c):
    """Records a conditional cell that takes a child, and a node as its condition."""
    lib.vpps_condition(c, lib.vpps_pull(c, 1, 1))
    lib.vpps_scatter_else(c, lib.vpps_tanh(c, lib.vpps_gather(c, 0, 0, 2, 1)), NO_ID)


def while_cell(c):
    """Records a loop's cell that takes a node, and a child with two scattered values."""
    lib.vpps_condition(c, lib.vpps_gather(c, 0, 1, 1, 1))
    for i, rows in enumerate([2, 1]):
        x = lib.vpps_gather(c, 0, i, rows, 1)
        lib.vpps_scatter_else(c, lib.vpps_scale_by(c, x, lib.vpps_pull(c, 1, 1)), x)


# The pointers of an application, by the call that takes it.
APPLIED = {"apply": ["children", "pulls", "indices", "list_members", "pull_lists", "pull_lists[0]"], "case": ["children", "pulls"],
           "while": ["children", "pulls"],
           "apply_many": ["children", "pulls", "indices", "lists", "pull_lists", "pull_lists[0]", "first", "lists[0].children"]}


@pytest.mark.parametrize(("call", "left_out"), [(call, p) for call, pointers in APPLIED.items() for p in [*pointers, None]])
def test_applications(objects, call, left_out):
    objects.renew()
    g, c = objects.graph, cell(objects, {"case": case_cell, "while": while_cell}.get(call, plain_cell))
    zero, one = lib.vpps_zeros(g, 2, 1), lib.vpps_ones(g, 1, 1)
    source, nodes, first = lib.vpps_source(g, 2, [zero, one]), ffi.new("vpps_node[]", [zero, zero]), ffi.new("uint32_t[]", [0, 1, 2])
    children, two = ffi.new("vpps_vertex[]", [source, source]), 2 if call == "apply_many" else 1

    def given(name, x):
        return ffi.NULL if left_out == name else x

    if call in ("case", "while"):
        arrays = {"children": [source], "pulls": [one] * (1 if call == "case" else 2)}
    else:
        arrays = {"children": [source, source], "pulls": [zero] * two, "indices": [0] * two, "pull_lists": [given("pull_lists[0]", nodes)]}
        if call == "apply":
            arrays["list_members"] = [1, 1]
        else:
            arrays["lists"] = [{"first": given("first", first), "children": given("lists[0].children", children)}, {"first": first}]
    kind = "vpps_applications" if call == "apply_many" else "vpps_application"
    members = {"size": ffi.sizeof(kind), "cell": c, **({"n": 2} if call == "apply_many" else {})}
    for name, values in arrays.items():
        of = {"children": "vpps_vertex", "pulls": "vpps_node", "pull_lists": "vpps_node *", "lists": "vpps_members_of"}.get(name, "uint32_t")
        count = "n_lists" if name == "list_members" else f"n_{name}"
        members |= {count: len(values) // (two if name in ("children", "pulls", "indices") else 1), name: given(name, ffi.new(f"{of}[]", values))}
    a = ffi.new(f"{kind} *", members)
    vertex = {"apply": lambda: lib.vpps_apply(g, a), "apply_many": lambda: lib.vpps_apply_many(g, a), "case": lambda: lib.vpps_case(g, 1, a),
              "while": lambda: lib.vpps_while(g, a, 2, ffi.NULL)}[call]()
    assert vertex != NO_ID if not left_out else vertex == NO_ID and " is NULL" in message(), message()


def test_forward(objects):
    objects.renew()
    zero, room = lib.vpps_zeros(objects.graph, 2, 1), ffi.new("float[2]")
    assert lib.vpps_forward(objects.handle, objects.graph, 2, [zero, zero], [room, ffi.NULL]) == lib.VPPS_ARGUMENT
    assert message() == "forward: outs[1] is NULL"
    assert lib.vpps_forward(objects.handle, objects.graph, 2, [zero, zero], [room, room]) == 0


def test_other_structs(objects, tmp_path):
    model, init = objects.out("vpps_model", lambda out: lib.vpps_model_create(out, 1)), ffi.new("vpps_init *")
    init.kind = lib.VPPS_INIT_VALUES
    assert lib.vpps_add_vector(model, ffi.new("vpps_param *"), b"b", 2, init) == lib.VPPS_ARGUMENT
    x = ffi.new("char[]", b"x")
    for key, value in (x, ffi.NULL), (ffi.NULL, x):
        one = ffi.new("vpps_metadata *", {"key": key, "value": value})
        assert lib.vpps_save(objects.handle, str(tmp_path / "checkpoint").encode(), one, 1) == lib.VPPS_ARGUMENT
    room, done = ffi.new("uint32_t *", 1), ffi.new("bool *")
    assert lib.vpps_handle_trials(objects.handle, ffi.NULL, room, done) == lib.VPPS_ARGUMENT


def test_arrays_of_no_elements(objects):
    objects.renew()
    none = ffi.NULL
    for status in (lib.vpps_pushed_many(objects.graph, 0, none, 0, none), lib.vpps_scattered_many(objects.graph, 0, none, 0, none),
                   lib.vpps_set_param_group(objects.handle, 0, none, none),
                   lib.vpps_handle_trials(objects.handle, none, ffi.new("uint32_t *"), ffi.new("bool *")),
                   lib.vpps_f1_add(objects.made["vpps_f1"], 0, none, none), lib.vpps_bleu_add(ffi.new("vpps_bleu *"), 0, none, 0, none),
                   lib.vpps_treebank_read_text(objects.made["vpps_treebank"], b"x", none, 0),
                   lib.vpps_vocab_map(objects.made["vpps_vocab"], objects.made["vpps_vocab"], 0, ffi.new("uint32_t **"))):
        assert status == 0, message()
    assert lib.vpps_source(objects.graph, 0, none) != NO_ID, message()
    assert lib.vpps_input_many(objects.graph, 0, 1, 1, none) != NO_ID, message()

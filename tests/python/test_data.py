"""Tests what the package says of data that it has read: labels of trees, words of lines, tags of chunks."""

import gzip
import re

import numpy as np
import pytest
from small import Small, refused

import vpps
from vpps import data


def test_labels_of_trees():
    text = "(S (NP-SBJ-1 a) (VP (NP (-NONE- *T*-1)) (VBZ b)))"
    assert list(data.Constituents("raw").read_text(text).labels) == ["S", "NP-SBJ-1", "VP", "NP", "-NONE-", "VBZ"]
    assert list(data.Constituents().read_text(text).labels) == ["S", "NP", "VP", "VBZ"]
    trees = data.Constituents("whole").read_text(text)
    kept = trees.labels
    assert trees.look_penn and kept[1] == "NP-SBJ-1"
    trees.cut()
    assert list(trees.labels) == ["S", "NP", "VP", "VBZ"] and kept[1] == "NP"


# ---------------------------------------------------------------- every reader and measure, on a few lines

def test_vocabularies():
    v = data.Vocab(["a", "b", "a", "ç"])
    assert list(v) == ["a", "b", "ç"] and v.find("b") == 1 and v.find("x") is None and "a" in v and v[2] == "ç"
    assert list(data.Vocab.from_text(v.to_text())) == list(v)
    assert list(v.cut([3, 0, 1])) == ["<unk>", *(v.word(i) for i in (0, 2))]  # keeps every word that occurs at all
    cut = v.cut([3, 1, 2], min_count=2)
    assert list(cut) == ["<unk>", "a", "ç"]
    np.testing.assert_array_equal(v.map(cut), [1, 0, 2])
    np.testing.assert_array_equal(v.map(data.Vocab(), missing=7), [7, 7, 7])
    refused(IndexError, "word 3 of 3", lambda: v[3])
    assert data.characters("aç€x") == ["a", "ç", "€", "x"]
    spelled = data.Vocab(["ab", "bç"]).spellings()
    assert ["".join(spelled.vocab[i] for i in spelled[k]) for k in range(2)] == ["ab", "bç"]


def test_a_tree_is_read_alone(monkeypatch):
    bank = data.Treebank().read_text("(0 a)\n(3 (2 a) (1 (0 b) (4 c)))\n(1 d)\n")
    expected, none = bank.arrays().take([1]), data.Treebank().arrays()
    assert len(none) == len(none.word) == 0
    monkeypatch.delattr(data.Treebank, "arrays")  # which copies all trees
    for i in (1, -2):
        for name, values in vars(bank.tree(i)).items():
            np.testing.assert_array_equal(values, getattr(expected, name))
            assert values.dtype == getattr(expected, name).dtype and values.flags.c_contiguous
    refused(IndexError, "tree 3 of 3", lambda: bank.tree(3))


def test_trees(tmp_path):
    text = "(3 (2 a) (1 (0 b) (4 c)))\n\n(1 d)\n"
    with gzip.open(tmp_path / "trees.gz", "wt") as file:
        file.write(text)
    for bank in (data.Treebank().read_text(text), data.Treebank().read(tmp_path / "trees.gz")):
        assert len(bank) == 2 and bank.classes == 5 and list(bank.vocab) == ["a", "b", "c", "d"]
        np.testing.assert_array_equal(bank.counts(), [1, 1, 1, 1])
        assert [bank.line(i) for i in range(2)] == [1, 3]
        assert bank.text(0).strip() == "(3 (2 a) (1 (0 b) (4 c)))"
        t = bank.arrays()
        assert t.first.tolist() == [0, 5, 6] and t.label.tolist() == [2, 0, 4, 1, 3, 1]
        assert t.left.tolist() == [-1, -1, -1, 1, 0, -1] and t.right.tolist() == [-1, -1, -1, 2, 3, -1]
        assert t.word.tolist() == [0, 1, 2, -1, -1, 3]
        assert bank.tree(1).word.tolist() == [3]
        both = t.take([1, 0])
        assert both.first.tolist() == [0, 1, 6] and both.left.tolist() == [-1, -1, -1, -1, 2, 1]
        for which in ([-1], 1, [False, True], np.array([True]).repeat(2) & [False, True]):
            assert t.take(which).word.tolist() == [3]
        refused(IndexError, "", lambda: t.take([2]))
    complete = data.Treebank().generate_complete(2, leaves=8).arrays()
    assert np.diff(complete.first).tolist() == [15, 15]
    refused(vpps.FormatError, "mine:1", lambda: data.Treebank().read_text("(1 a", "mine"))


def test_constituents(tmp_path):
    (tmp_path / "a.mrg").write_text("\n(S (NP (D the) (N cat)) (V sat))\n")
    trees = data.Constituents().read(tmp_path / "a.mrg")
    assert len(trees) == 1 and trees.line(0) == 2 and list(trees.vocab) == ["the", "cat", "sat"]
    label, children, size, word = trees.tree(0)
    assert [trees.labels[i] for i in label] == ["D", "N", "NP", "V", "S"] and children.tolist() == [0, 0, 2, 0, 2]
    assert size.tolist() == [1, 1, 3, 1, 5] and word.tolist() == [0, 1, data.NO_WORD, 2, data.NO_WORD]
    labels, bank = data.Vocab(), data.Treebank()
    trees.binarise(bank, labels)
    assert len(bank) == 1 and list(bank.vocab) == ["the", "cat", "sat"] and len(bank.arrays().label) == 5


def test_sentences(tmp_path):
    def file(text):
        (tmp_path / "f").write_text(text)
        return tmp_path / "f"

    tagged = "a|X b|Y\na|Y\n"
    for s in (data.Sentences().read_tagged_text(tagged), data.Sentences().read_tagged(file(tagged)),
              data.Sentences().read_columns(file("a X\nb Y\n\na Y\n"))):
        assert len(s) == 2 and s.total_words == 3 and list(s.vocab) == ["a", "b"] and list(s.tag_vocab) == ["X", "Y"]
        assert [x.words.tolist() for x in s] == [[0, 1], [0]] and [x.tags.tolist() for x in s] == [[0, 1], [1]]
        assert s.counts().tolist() == [2, 1] and s.line(1) in (2, 4) and s[-1].words.tolist() == [0] and len(s[0:2]) == 2
        assert s.label(0) is None
    noted = data.Sentences().read_columns_text("# c c\n\na X\n#\nb O\n", comments=True)
    assert [noted.word_line(0, k) for k in range(2)] == [3, 5]
    labelled = "good\ta b\nbad\tb\n"
    for s in (data.Sentences().read_labelled_text(labelled), data.Sentences().read_labelled(file(labelled))):
        assert [s.tag_vocab[s.label(i)] for i in range(2)] == ["good", "bad"] and s[0].tags is None
    lines = "a b\n\nc\n"
    for s in (data.Sentences().read_lines_text(lines, end_word="."), data.Sentences().read_lines(file(lines), end_word=".")):
        assert [[s.vocab[i] for i in x.words] for x in s] == [["a", "b", "."], ["c", "."]]
    (tmp_path / "g").write_text("x\n\ny\n")
    for read, arguments in ((data.read_parallel_texts, (lines, "x\n\ny\n")), (data.read_parallel, (file(lines), tmp_path / "g"))):
        source, target = data.Sentences(), data.Sentences()
        read(*arguments, source, target, end_word=".", skip_empty=True)
        assert len(source) == len(target) == 2 and [target.vocab[i] for i in target[1].words] == ["y", "."]


def test_dependency_trees(tmp_path):
    rows = [(1, "It", 2, "nsubj:pass"), (2, "rains", 0, "root")]
    text = "# mood = sad\n" + "".join(f"{i}\t{word}\t_\t_\t_\t_\t{head}\t{r}\t_\t_\n" for i, word, head, r in rows)
    (tmp_path / "f").write_text(text)
    for s in (data.Sentences().read_dependencies_text(text), data.Sentences().read_dependencies(tmp_path / "f")):
        assert list(s.vocab) == ["It", "rains"] and list(s.tag_vocab) == ["nsubj:pass", "root"]
        assert s.heads(0).tolist() == [2, 0] and s[0].tags.tolist() == [0, 1] and s.word_line(0, 1) == 3
    assert list(data.Sentences().read_dependencies_text(text, cut_subtypes=True).tag_vocab) == ["nsubj", "root"]
    labelled = data.Sentences().read_dependencies_text(text, label="mood")
    assert labelled.tag_vocab[labelled.label(0)] == "sad" and labelled[0].tags is None
    assert data.Sentences().read_dependencies_text(text, heads_only=True)[0].tags is None
    assert data.Sentences().read_lines_text("a").heads(0) is None


def test_lattices(tmp_path):
    lexicon = data.Vocab()
    data.read_lexicon_text("bc 3 n\n", lexicon)
    (tmp_path / "lexicon").write_text("ab 1 n\n")
    data.read_lexicon(tmp_path / "lexicon", lexicon)
    assert list(lexicon) == ["bc", "ab"]
    built = data.Lattices().build(data.Sentences().read_tagged_text("a|X b|X c|Y"), lexicon)
    one = built[0]
    assert len(built) == 1 and len(built[0:1]) == 1 and len(one.tags) + 1 == len(one.first_arc) and one.first_arc[-1] == 5
    spanned = [(int(i), int(s)) for i in range(len(one.tags)) for s in one.source[one.first_arc[i]:one.first_arc[i + 1]]]
    assert sum(one.is_character) == 3 and sorted(i - s for i, s in spanned) == [1, 1, 1, 2, 2]
    assert built.sizes[0] == 2 and built.line(0) == 1


def test_vectors(tmp_path):
    (tmp_path / "v").write_text("a 1 2\nc 3 4\n")
    assert data.describe_vectors(tmp_path / "v") == ("glove", 0, 2)
    values = np.zeros((2, 2), np.float32)
    assert data.read_vectors(tmp_path / "v", data.Vocab(["b", "c"]), values) == (2, 1)
    assert values.tolist() == [[0, 0], [3, 4]]
    with pytest.raises(vpps.ArgumentError, match="expected contiguous float32, 3 x size"):
        data.read_vectors(tmp_path / "v", data.Vocab(["a", "b", "c"]), values)
    fixed = bytes(16)
    with pytest.raises(vpps.ArgumentError, match=r"read-only values of \(2, 2\)"):
        data.read_vectors(tmp_path / "v", data.Vocab(["b", "c"]), np.frombuffer(fixed, np.float32).reshape(2, 2))
    assert fixed == bytes(16)


def test_a_path_does_not_end_at_a_nul(root, tmp_path, monkeypatch):
    """No function reads or replaces the file whose name is the path up to a NUL."""
    monkeypatch.chdir(tmp_path)
    net, none = Small(vps=1).train(), data.Sentences()
    net.trainer.save("f")
    before = (tmp_path / "f").read_bytes()
    uses = [getattr(of(), name) for of in (data.Treebank, data.Constituents, data.Sentences) for name in dir(of)
            if re.fullmatch("read(_[a-z]+)?", name) and not name.endswith("_text")]
    uses += [data.describe_vectors, lambda path: data.read_vectors(path, data.Vocab(), np.zeros((0, 1), np.float32)),
             lambda path: data.read_lexicon(path, data.Vocab()), lambda path: data.read_parallel(path, "f", none, none),
             lambda path: data.read_parallel("f", path, none, none), net.trainer.save, net.trainer.load, net.model.export_c,
             lambda path: net.model.export_c("g", header=path), lambda path: net.model.export_c("g", weights=path),
             lambda path: vpps.checkpoint_metadata(path, "key"), vpps.Metrics, lambda path: list(vpps.metrics.read_csv(path))]
    for use in uses:
        refused(ValueError, "holds NUL|embedded null", lambda: use("f\0x"))
    assert [p.name for p in tmp_path.iterdir()] == ["f"] and (tmp_path / "f").read_bytes() == before
    source = "".join(p.read_text() for p in (root / "python/vpps").glob("*.py"))
    assert len(re.findall(r"[(,]\s*\w+: Path\b", source)) == len(uses) + 1, "two uses are of one read; _file and path_bytes pass paths on"


def test_measures():
    assert data.F1.applies(data.Vocab(["O", "B-X", "L-X", "0"])) and not data.F1.applies(data.Vocab(["NN", "O"]))
    f1 = data.F1(data.Vocab(["O", "B-X", "I-X", "B-Y"]))
    f1.add([1, 2, 0, 3], [1, 2, 0, 1])
    assert f1.tokens == (4, 3) and f1.types == ["X", "Y"] and f1.counts("Y") == (1, 0, 0)
    refused(vpps.ArgumentError, "counts: 'Z'; expected one of X, Y", lambda: f1.counts("Z"))
    assert (f1.counts().precision, f1.counts().recall, f1.counts().f1) == (0.5, 0.5, 0.5)
    bleu = data.Bleu()
    bleu.add([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    assert bleu.score() == pytest.approx(100) and "BLEU" in bleu.signature().upper()
    bleu.add([1, 2, 3, 9, 5, 6], [1, 2, 3, 4, 5, 6])
    assert 50 < bleu.score("exp") < 100
    refused(vpps.ArgumentError, "expected one of exp, none", lambda: bleu.score("add"))

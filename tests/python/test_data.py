"""What the package says of data that were read: labels of trees, the lines of words, tags of chunks."""

from vpps import data


def labels(constituents):
    return [constituents.labels[i] for i in range(len(constituents.labels))]


def test_labels_of_trees():
    text = "(S (NP-SBJ-1 a) (VP (NP (-NONE- *T*-1)) (VBZ b)))"
    assert labels(data.Constituents("raw").read_text(text)) == ["S", "NP-SBJ-1", "VP", "NP", "-NONE-", "VBZ"]
    assert labels(data.Constituents().read_text(text)) == ["S", "NP", "VP", "VBZ"]
    trees = data.Constituents("whole").read_text(text)
    kept = trees.labels
    assert trees.look_penn and kept[1] == "NP-SBJ-1"
    trees.cut()
    assert labels(trees) == ["S", "NP", "VP", "VBZ"] and kept[1] == "NP"


def test_lines_of_words():
    sentences = data.Sentences().read_columns_text("# c c\n\na X\n#\nb O\n", comments=True)
    assert [sentences.word_line(0, k) for k in range(2)] == [3, 5]


def test_tags_of_chunks():
    assert data.F1.applies(data.Vocab(["O", "B-X", "L-X", "0"])) and not data.F1.applies(data.Vocab(["NN", "O"]))
    f1 = data.F1(data.Vocab(["O", "B-X", "L-X", "0"]))
    f1.add([1, 2, 3], [1, 2, 0])
    assert f1.counts() == (1, 1, 1)

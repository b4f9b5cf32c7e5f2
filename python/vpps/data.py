"""Data sets: vocabularies, trees, sentences, lattices, pretrained vectors; and metrics of results. Text that does not fit its format raises
`vpps.FormatError`, which names the line and what was expected. Files may be compressed by gzip or zstd."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, SupportsIndex, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import F32, U32, Path, as_u32, choice, encode, names_of, path_bytes, place, plain, struct, u32_pointer, whole
from ._vpps import ffi, lib
from .errors import ArgumentError, Uncopied, check, result, written

I64 = NDArray[np.int64]
Text = Union[str, bytes]
Read = TypeVar("Read", bound="_Data")
NO_WORD = 2**32 - 1


def _new(create: Any, destroy: Any, *arguments: Any) -> Any:
    """Returns the C object that create(out, ...) makes; `destroy` frees the object when Python no longer refers to it."""
    out = ffi.new(ffi.typeof(create).args[0].cname)
    check(create(out, *arguments))
    return ffi.gc(out[0], destroy)


def _take_u32(p: Any, n: int) -> U32:
    """Copies n numbers that C allocated, and frees them."""
    return _copy_u32(ffi.gc(p, lib.free), n)


def _copy_u32(p: Any, n: int) -> U32:
    return np.frombuffer(ffi.buffer(p, 4 * n), np.uint32).copy() if n else np.empty(0, np.uint32)


def _text(text: Text) -> tuple[bytes, int]:
    """A text as C takes it: its bytes, and their number."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return data, len(data)


class Vocab:
    """Words with ids from 0, in order of their first occurrence."""

    def __init__(self, words: Sequence[str] = ()) -> None:
        self._c = _new(lib.vpps_vocab_create, lib.vpps_vocab_destroy)
        self._owner: object = None
        for word in words:
            self.add(word)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return Vocab, (list(self),)

    @classmethod
    def _of(cls, c: Any, owner: object = None) -> Vocab:
        v = cls.__new__(cls)
        v._c, v._owner = c, owner  # owner: the object whose memory c is in; it must live as long as v
        return v

    @classmethod
    def from_text(cls, text: str) -> Vocab:
        """The vocabulary whose `to_text` is `text`."""
        return cls._of(_new(lib.vpps_vocab_from_text, lib.vpps_vocab_destroy, encode(text, "text")))

    def to_text(self) -> str:
        """All words, one per line, in order of their ids."""
        return ffi.string(ffi.gc(result(lib.vpps_vocab_to_text, self._c), lib.free)).decode("utf-8", "surrogateescape")

    def add(self, word: str) -> int:
        """The id of a word, which is added when it is new."""
        if self._owner is not None:
            raise ArgumentError("add: the vocabulary belongs to data that were read; see cut")
        return result(lib.vpps_vocab_add, self._c, *_text(word))

    def find(self, word: str) -> int | None:
        """The id of a word, or None."""
        id: int = lib.vpps_vocab_find(self._c, *_text(word))
        return None if id == NO_WORD else id

    def word(self, id: int) -> str:
        """The word of an id."""
        n = whole(id, "word", NO_WORD)
        if n >= len(self):
            raise IndexError(f"word {n} of {len(self)}")
        return ffi.string(lib.vpps_vocab_word(self._c, n)).decode("utf-8", "surrogateescape")

    __getitem__ = word

    def __len__(self) -> int:
        return lib.vpps_vocab_size(self._c)

    def __contains__(self, word: str) -> bool:
        return self.find(word) is not None

    def __iter__(self) -> Iterator[str]:
        return (self.word(i) for i in range(len(self)))

    def cut(self, counts: ArrayLike | None = None, min_count: int = 1) -> Vocab:
        """Returns a vocabulary for a network: <unk> with id 0, then the words with counts[id] >= min_count; counts None: all words."""
        c = None if counts is None else as_u32(counts, "counts")
        if c is not None and len(c) != len(self):
            raise ArgumentError(f"cut: {len(c)} counts; expected {len(self)}, one a word")
        pointer = ffi.NULL if c is None else u32_pointer(c)
        return Vocab._of(_new(lib.vpps_vocab_cut, lib.vpps_vocab_destroy, self._c, pointer, min_count))

    def map(self, to: Vocab, missing: int = 0) -> U32:
        """Returns an array that translates ids of this vocabulary to ids of `to`; ids of words that `to` lacks become `missing`."""
        return _take_u32(result(lib.vpps_vocab_map, self._c, to._c, missing), len(self))

    def spellings(self) -> Spellings:
        """The characters of each word that the vocabulary has now."""
        return Spellings(self)


class Spellings(Uncopied):
    """The characters of each word of a vocabulary, for networks that read words letter by letter."""

    def __init__(self, words: Vocab) -> None:
        self._c = _new(lib.vpps_spellings_create, lib.vpps_spellings_destroy, words._c)
        self.vocab = Vocab._of(lib.vpps_spellings_vocab(self._c), self)

    def __getitem__(self, word: int) -> U32:
        """The ids, in `vocab`, of a word's characters; none for an unknown word."""
        n = ffi.new("uint32_t *")
        return _copy_u32(lib.vpps_spellings_word(self._c, word, n), n[0])


def characters(text: str) -> list[str]:
    """Splits a text into UTF-8 characters, as `Spellings` splits the words of a vocabulary. A byte that is not UTF-8 is a character by itself."""
    (data, size), at, out = _text(text), 0, []
    while at < size:
        n: int = lib.vpps_utf8_character(data[at:at + 4], size - at)
        out.append(data[at:at + n].decode("utf-8", "surrogateescape"))
        at += n
    return out


class VectorsInfo(NamedTuple):
    """What a file of word vectors contains. `words`: number of vectors, 0 if the format does not tell the number."""

    form: str; words: int; size: int


class VectorsFound(NamedTuple):
    """Counts of a vocabulary's words: all, and those that have a vector in a file."""

    words: int; found: int


FORMS = {number: name for name, number in names_of("VPPS_VECTORS_").items()}


def describe_vectors(path: Path) -> VectorsInfo:
    """Returns the format of a file of word vectors (of word2vec, GloVe or fastText), their number if the format tells it, and their length."""
    info = result(lib.vpps_vectors_describe, path_bytes(path))
    return VectorsInfo(FORMS[info.form], info.words, info.size)


def read_vectors(path: Path, words: Vocab, values: F32) -> VectorsFound:
    """Sets values[id] for each word that has a vector in the file; `values` is len(words) x size, as `embedding.view()` gives it."""
    usable = values.dtype == np.float32 and values.flags.c_contiguous and values.flags.writeable
    if not usable or values.ndim != 2 or len(values) != len(words):
        raise ArgumentError(f"read_vectors: {'' if values.flags.writeable else 'read-only '}values of {values.shape}, {values.dtype}; expected "
                            f"contiguous float32, {len(words)} x size, that can be written")
    room = ffi.from_buffer("float[]", values, require_writable=True)
    found = result(lib.vpps_vectors_read, path_bytes(path), words._c, values.shape[1], room)
    return VectorsFound(found.words, found.found)


class _Data(Uncopied):
    """The base of data that C reads from files and texts, and appends to earlier data."""

    _kind: str  # the word KIND in names of C's functions: vpps_KIND_create, vpps_KIND_size

    def __init__(self) -> None:
        self._c = _new(self._call("create"), self._call("destroy"))

    def _call(self, name: str) -> Any:
        return getattr(lib, f"vpps_{self._kind}_{name}")

    def _file(self: Read, function: str, path: Path, *options: Any) -> Read:
        check(self._call(function)(self._c, path_bytes(path), *options))
        return self

    def _from(self: Read, function: str, text: Text, name: str, *options: Any) -> Read:
        check(self._call(function)(self._c, encode(name, "name"), *_text(text), *options))
        return self

    def __len__(self) -> int:
        return self._call("size")(self._c)

    def line(self, i: int) -> int:
        """The line in which tree, sentence or lattice i begins, from 1; 0: it was generated."""
        return self._call("line")(self._c, i)


class _OfOneFormat(_Data):
    def read(self: Read, path: Path) -> Read:
        """Appends the data of a file."""
        return self._file("read_file", path)

    def read_text(self: Read, text: Text, name: str = "<text>") -> Read:
        """Appends the data of a text; messages name it `name`, as they name a file."""
        return self._from("read_text", text, name)


class _OfWords(_Data):
    @property
    def vocab(self) -> Vocab:
        """The vocabulary of all words read."""
        return Vocab._of(self._call("vocab")(self._c), self)


@dataclass(frozen=True)
class Trees:
    """Many binary trees as arrays over all their nodes, children before parents: tree i is nodes first[i] to first[i + 1] - 1, its
    root the last one. -1 stands for no label, no child, no word."""

    first: I64; label: NDArray[np.int32]; left: I64; right: I64; word: I64

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def parents(self) -> I64:
        """The index of each node's parent, -1 for a root: the argument of `vpps.nn.tree`."""
        up, inner = np.full(len(self.left), -1, np.int64), np.flatnonzero(self.left >= 0)
        up[self.left[inner]] = up[self.right[inner]] = inner
        return up

    def with_words(self, ids: ArrayLike) -> Trees:
        """Returns these trees with other ids of words: id k becomes ids[k], for example with the ids that `Vocab.map` returns."""
        new = as_u32(ids, "ids").astype(np.int64)
        return replace(self, word=np.where(self.word >= 0, new[self.word], -1))

    def take(self, which: ArrayLike) -> Trees:
        """Returns some of the trees, as a batch. `which`: their numbers, of which negative ones count from the end, or a mask."""
        numbers = plain(which, "which")
        which = np.atleast_1d(np.arange(len(self))[numbers if numbers.size else numbers.astype(np.int64)])
        size = self.first[which + 1] - self.first[which]
        first = np.zeros(len(which) + 1, np.int64)
        np.cumsum(size, out=first[1:])
        move = np.repeat(first[:-1] - self.first[which], size)
        at = np.arange(first[-1]) - move
        left, right = self.left[at], self.right[at]
        inner = left >= 0
        left[inner] += move[inner]
        right[inner] += move[inner]
        return Trees(first, self.label[at], left, right, self.word[at])


class Treebank(_OfOneFormat, _OfWords):
    """Labelled binary trees. A file has a tree per line, in brackets as in the Stanford Sentiment Treebank: (2 (1 a) (3 b))."""

    _kind = "treebank"

    def generate_listops(self, n: int, seed: int = 1, *, max_depth: int = 0, max_arguments: int = 0, min_leaves: int = 0,
                         max_leaves: int = 0) -> Treebank:
        """Appends n random ListOps (Nangia and Bowman 2018) labelled by value. 0 means max_depth 4, max_arguments 5, min_leaves 2, max_leaves 64."""
        check(lib.vpps_treebank_generate_listops(self._c, struct("vpps_listops", locals()), n))
        return self

    def generate_complete(self, n: int, seed: int = 1, *, leaves: int = 0) -> Treebank:
        """Appends n complete binary trees of `leaves` random words a to e (`leaves` 0 means 256). A tree's label, 0 to 4, is its commonest word."""
        check(lib.vpps_treebank_generate_complete(self._c, struct("vpps_complete_trees", locals()), n))
        return self

    @property
    def classes(self) -> int:
        """The number of classes: 1 + the largest label."""
        return lib.vpps_treebank_classes(self._c)

    def counts(self) -> U32:
        """How often each word occurs."""
        return _take_u32(result(lib.vpps_treebank_counts, self._c), len(self.vocab))

    def text(self, i: int) -> str:
        """Returns tree i as a line of text in the treebank's brackets."""
        return written(lambda file: lib.vpps_treebank_write(self._c, i, file))[0].decode("utf-8", "surrogateescape")

    def tree(self, i: int) -> Trees:
        """Returns the arrays of tree i alone."""
        return self._arrays([place(i, len(self), "tree")])

    def arrays(self) -> Trees:
        """Returns the arrays of all trees: the nodes of tree i + 1 follow those of tree i."""
        return self._arrays(range(len(self)))

    def _arrays(self, which: Iterable[int]) -> Trees:
        trees = [lib.vpps_treebank_tree(self._c, i) for i in which]
        nodes = np.frombuffer(b"".join(ffi.buffer(t.nodes[0:t.n_nodes]) for t in trees), np.int32).reshape(-1, 4)
        first = np.cumsum([0, *(t.n_nodes for t in trees)], dtype=np.int64)
        begin = np.repeat(first[:-1], np.diff(first))  # for each node, the first node of its tree
        left, right = (np.where(child < 0, -1, begin + child) for child in (nodes[:, 1], nodes[:, 2]))
        word = nodes[:, 3].astype(np.uint32).astype(np.int64)
        return Trees(first, nodes[:, 0].copy(), left, right, np.where(word == NO_WORD, -1, word))


class Constituents(_OfOneFormat, _OfWords):
    """n-ary trees of the Penn Treebank. `form` says what becomes of labels: "cut" leaves out function tags (NP-SBJ-1 is NP) and null
    elements, "whole" leaves out null elements only, "raw" nothing."""

    _kind = "constituents"

    def __init__(self, form: Literal["raw", "cut", "whole"] = "cut") -> None:
        kind = choice(form, "form", {"raw": lib.VPPS_LABELS_RAW, "cut": lib.VPPS_LABELS_CUT, "whole": lib.VPPS_LABELS_WHOLE})
        self._c = _new(lib.vpps_constituents_create, lib.vpps_constituents_destroy, kind)

    @property
    def labels(self) -> Vocab:
        """The vocabulary of labels: phrases and parts of speech."""
        return Vocab._of(lib.vpps_constituents_labels(self._c), self)

    @property
    def look_penn(self) -> bool:
        """Whether there are labels NP and VP, as in the Penn Treebank."""
        return bool(lib.vpps_constituents_look_penn(self._c))

    def cut(self) -> None:
        """Removes the function tags from all labels read so far; `labels` gets new ids."""
        check(lib.vpps_constituents_cut(self._c))

    def tree(self, i: int) -> tuple[U32, U32, U32, U32]:
        """Four arrays over the nodes of tree i, in post-order: label, number of children, nodes of the subtree, word (NO_WORD: none). The
        last child of node k is k - 1; the child before a child c is c minus the nodes of c's subtree."""
        t = lib.vpps_constituents_tree(self._c, i)
        a = _copy_u32(t.nodes, 4 * t.n_nodes).reshape(-1, 4)
        return a[:, 0], a[:, 1], a[:, 2], a[:, 3]

    def binarise(self, treebank: Treebank, labels: Vocab, branching: Literal["left", "right"] = "left") -> None:
        """Appends all trees to `treebank` as binary trees: (X a b c) becomes (X (X* a b) c), with branching "right" (X a (X* b c)). A node's
        label is the id of its text in `labels`, to which new ones are added."""
        kind = choice(branching, "branching", {"left": lib.VPPS_LEFT_BRANCHING, "right": lib.VPPS_RIGHT_BRANCHING})
        check(lib.vpps_constituents_binarise(self._c, kind, labels._c, treebank._c))


class Sentence(NamedTuple):
    """The ids of words, and of their tags if the text has tags."""

    words: U32; tags: U32 | None


class Sentences(_OfWords, Sequence[Sentence]):
    """Sentences of words: with tags, with a label each, or with neither."""

    _kind = "sentences"

    def read_tagged(self, path: Path) -> Sentences:
        """Appends the sentences of a file that has a sentence of word|TAG tokens on each line."""
        return self._file("read_tagged_file", path)

    def read_tagged_text(self, text: Text, name: str = "<text>") -> Sentences:
        """Does as `read_tagged` does, with a text instead of a file; messages call it `name`."""
        return self._from("read_tagged_text", text, name)

    def read_labelled(self, path: Path) -> Sentences:
        """Appends the sentences of a file that has a label, a tab and a sentence on each line."""
        return self._file("read_labelled_file", path)

    def read_labelled_text(self, text: Text, name: str = "<text>") -> Sentences:
        """Does as `read_labelled` does, with a text instead of a file; messages call it `name`."""
        return self._from("read_labelled_text", text, name)

    def read_columns(self, path: Path, *, word: int = 0, tag: int = 0, tabs: bool = False, comments: bool = False,
                     conllu: bool = False, word_name: str | None = None, tag_name: str | None = None) -> Sentences:
        """Appends sentences of a file in CoNLL's columns: a token per line, a blank line between sentences. `word` and `tag`: numbers of
        columns, from 1; 0: the first and the last. `tabs`: each tab ends a column, else white space does. `comments`: lines that begin with #
        may be comments. `conllu`: the file is CoNLL-U; names of columns (`word_name`, `tag_name`) may replace numbers; default FORM, UPOS."""
        return self._file("read_columns_file", path, struct("vpps_columns", locals()))

    def read_columns_text(self, text: Text, name: str = "<text>", *, word: int = 0, tag: int = 0, tabs: bool = False, comments: bool = False,
                          conllu: bool = False, word_name: str | None = None, tag_name: str | None = None) -> Sentences:
        """Does as `read_columns` does, with a text instead of a file; messages call it `name`."""
        return self._from("read_columns_text", text, name, struct("vpps_columns", locals()))

    def read_dependencies(self, path: Path, *, cut_subtypes: bool = False, heads_only: bool = False, label: str | None = None) -> Sentences:
        """Appends the dependency trees of a CoNLL-U file. Tags are relations; with `cut_subtypes` nsubj:pass becomes nsubj. With `label` "X"
        sentences have labels, from comments "# X = ...", instead of tags; with `heads_only` they have neither."""
        return self._file("read_dependencies_file", path, struct("vpps_dependencies", locals()))

    def read_dependencies_text(self, text: Text, name: str = "<text>", *, cut_subtypes: bool = False,
                               heads_only: bool = False, label: str | None = None) -> Sentences:
        """Does as `read_dependencies` does, with a text instead of a file; messages call it `name`."""
        return self._from("read_dependencies_text", text, name, struct("vpps_dependencies", locals()))

    def heads(self, i: int) -> U32 | None:
        """For each word of sentence i, the number, from 1, of the word that it depends on; 0: a root. None: no dependency trees were read."""
        s = lib.vpps_sentences_get(self._c, i)
        return _copy_u32(s.heads, s.n_words) if s.heads else None

    def read_lines(self, path: Path, *, end_word: str | None = None, keep_empty: bool = False) -> Sentences:
        """Appends a file of plain text, a sentence per line, each with `end_word` at its end. `keep_empty` keeps lines without words."""
        return self._file("read_lines_file", path, struct("vpps_lines", locals()))

    def read_lines_text(self, text: Text, name: str = "<text>", *, end_word: str | None = None, keep_empty: bool = False) -> Sentences:
        """Does as `read_lines` does, with a text instead of a file; messages call it `name`."""
        return self._from("read_lines_text", text, name, struct("vpps_lines", locals()))

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        s = lib.vpps_sentences_get(self._c, place(i, len(self), "sentence"))
        return Sentence(_copy_u32(s.words, s.n_words), _copy_u32(s.tags, s.n_words) if s.tags else None)

    def label(self, i: int) -> int | None:
        """The label of a sentence, an id in `tag_vocab`."""
        id: int = lib.vpps_sentences_label(self._c, i)
        return None if id == NO_WORD else id

    def word_line(self, i: int, k: int) -> int:
        """The line of the file on which word k of sentence i is, if tags or dependencies were read; else the sentence's first line."""
        return lib.vpps_sentences_word_line(self._c, i, k)

    @property
    def total_words(self) -> int:
        """The number of words in all sentences together."""
        return lib.vpps_sentences_total_words(self._c)

    @property
    def tag_vocab(self) -> Vocab:
        """The vocabulary of the words' tags, or of the sentences' labels if sentences were read with labels, such as by `read_labelled`."""
        return Vocab._of(lib.vpps_sentences_tag_vocab(self._c), self)

    def counts(self) -> U32:
        """How often each word occurs."""
        return _take_u32(result(lib.vpps_sentences_counts, self._c), len(self.vocab))


def read_parallel(source_path: Path, target_path: Path, source: Sentences, target: Sentences, *, end_word: str | None = None,
                  skip_empty: bool = False) -> None:
    """Appends two files of plain text, whose lines are translations of each other, to `source` and `target`. `end_word` is appended to the
    sentences of `target`. A pair with an empty line is an error, or with `skip_empty` left out."""
    o = struct("vpps_parallel", locals())
    check(lib.vpps_sentences_read_parallel_files(source._c, target._c, path_bytes(source_path), path_bytes(target_path), o))


def read_parallel_texts(source_text: Text, target_text: Text, source: Sentences, target: Sentences, *,
                        end_word: str | None = None, skip_empty: bool = False) -> None:
    """As `read_parallel`, from two texts; messages name them <source> and <target>."""
    o = struct("vpps_parallel", locals())
    check(lib.vpps_sentences_read_parallel_texts(source._c, target._c, b"<source>", *_text(source_text), b"<target>", *_text(target_text), o))


def generate_language(n: int, seed: int = 1, *, characters: bool = False, tags: bool = False, labels: bool = False, end_word: str | None = None,
                      translation: Sentences | None = None, lexicon: Vocab | None = None) -> Sentences:
    """Returns n random sentences of a small artificial language, in which names occur. `characters` splits sentences into letters; `tags` marks
    names (B-PER); with `labels`, a sentence's label is the kind of its first name. `end_word` is appended to translations, or, without
    these, to sentences. Translations go to `translation`, all words of the language to `lexicon`."""
    s, o = Sentences(), struct("vpps_language", locals())
    check(lib.vpps_sentences_generate(s._c, ffi.NULL if translation is None else translation._c,
                                      ffi.NULL if lexicon is None else lexicon._c, o, n))
    return s


class Lattice(NamedTuple):
    """A lattice of characters and words: the arcs into node i are first_arc[i] to first_arc[i + 1] - 1. Each arc comes from an earlier
    node, and is a character or a word. `tags` has one tag for each node."""

    tags: U32; first_arc: U32; source: U32; id: U32; is_character: NDArray[np.bool_]


class Lattices(_Data, Sequence[Lattice]):
    """Lattices of characters and words, built from sentences of characters and a lexicon."""

    _kind = "lattices"

    def build(self, characters: Sentences, lexicon: Vocab) -> Lattices:
        """Appends a lattice for each sentence of characters, with an arc per character and an arc per word of `lexicon` that they spell."""
        check(lib.vpps_lattices_build(self._c, characters._c, lexicon._c))
        return self

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        l = lib.vpps_lattices_get(self._c, place(i, len(self), "lattice"))
        first, size = _copy_u32(l.first_arc, l.n_nodes + 1), ffi.sizeof("vpps_lattice_arc")
        names = {"from": np.uint32, "id": np.uint32, "is_character": np.bool_}
        kind = np.dtype({"names": list(names), "formats": list(names.values()), "offsets": [ffi.offsetof("vpps_lattice_arc", f) for f in names],
                         "itemsize": size})
        arcs = np.frombuffer(bytes(ffi.buffer(l.arcs, int(first[-1]) * size)), kind)
        return Lattice(_copy_u32(l.tags, l.n_nodes), first, *(arcs[name].copy() for name in names))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """1 + the largest id of tags, of characters and of words."""
        return (lib.vpps_lattices_tags(self._c), lib.vpps_lattices_characters(self._c), lib.vpps_lattices_words(self._c))


def read_lexicon(path: Path, words: Vocab) -> None:
    """Adds the words of a lexicon, a file of lines "word frequency POS", to `words`."""
    check(lib.vpps_lexicon_read_file(words._c, path_bytes(path)))


def read_lexicon_text(text: Text, words: Vocab, name: str = "<text>") -> None:
    """Does as `read_lexicon` does, with a text instead of a file; messages call it `name`."""
    check(lib.vpps_lexicon_read_text(words._c, encode(name, "name"), *_text(text)))


class Counts(NamedTuple):
    """Numbers of chunks; `precision`, `recall` and `f1` go from 0 to 1."""

    gold: int; predicted: int; correct: int

    def _c(self) -> Any:
        return ffi.new("vpps_f1_counts *", tuple(self))[0]

    @property
    def precision(self) -> float:
        """The fraction of the predicted chunks that are right, 0 to 1."""
        return float(lib.vpps_f1_precision(self._c()))

    @property
    def recall(self) -> float:
        """The fraction of the chunks in the gold tags that were predicted, 0 to 1."""
        return float(lib.vpps_f1_recall(self._c()))

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, 0 to 1."""
        return float(lib.vpps_f1_score(self._c()))


class F1(Uncopied):
    """Precision and recall of chunks, as conlleval counts them, from tags of IOB1, IOB2, IOBES, BILOU or BMES. Other tags count as O."""

    @staticmethod
    def applies(tags: Vocab) -> bool:
        """Whether the tags look like tags of chunks, such as B-NP and I-NP."""
        return bool(lib.vpps_f1_applies(tags._c))

    def __init__(self, tags: Vocab) -> None:
        self._tags = tags
        self._c = _new(lib.vpps_f1_create, lib.vpps_f1_destroy, tags._c)

    def add(self, gold: ArrayLike, predicted: ArrayLike) -> None:
        """Counts the chunks of a sentence, given its words' right and predicted tag ids."""
        a, b = as_u32(gold, "gold"), as_u32(predicted, "predicted")
        if a.shape != b.shape or a.ndim != 1:
            raise ArgumentError(f"add: {a.shape} gold and {b.shape} predicted tags; expected as many of both")
        check(lib.vpps_f1_add(self._c, len(a), u32_pointer(a), u32_pointer(b)))

    @property
    def types(self) -> list[str]:
        """The types of chunks (spans of words), such as NP and PER, that occur in the vocabulary of tags."""
        return [ffi.string(lib.vpps_f1_type(self._c, i)).decode() for i in range(lib.vpps_f1_types(self._c))]

    def counts(self, kind: str | None = None) -> Counts:
        """The numbers of gold, predicted and correct chunks, of one type of chunk or of all types."""
        types = self.types
        if kind is not None and kind not in types:
            raise ArgumentError(f"counts: {kind!r}; expected one of {', '.join(types) or 'no types'}")
        c = lib.vpps_f1_all_counts(self._c) if kind is None else lib.vpps_f1_type_counts(self._c, types.index(kind))
        return Counts(c.gold, c.predicted, c.correct)

    @property
    def tokens(self) -> tuple[int, int]:
        """The number of tags that were counted, and the number of right ones among these tags."""
        right = ffi.new("uint64_t *")
        n: int = lib.vpps_f1_tokens(self._c, right)
        return n, right[0]


_SMOOTHINGS = names_of("VPPS_BLEU_")


class Bleu(Uncopied):
    """Corpus BLEU with n-grams up to 4 and one reference for each sentence; words are compared by id."""

    def __init__(self) -> None:
        self._c = ffi.new("vpps_bleu *")

    def add(self, hypothesis: ArrayLike, reference: ArrayLike) -> None:
        """Adds the n-grams of a translated sentence, `hypothesis`, and of its reference translation to the counts; both are ids of words."""
        a, b = as_u32(hypothesis, "hypothesis"), as_u32(reference, "reference")
        check(lib.vpps_bleu_add(self._c, len(a), u32_pointer(a), len(b), u32_pointer(b)))

    def score(self, smoothing: Literal["none", "exp"] = "none") -> float:
        """The BLEU score, 0 to 100."""
        return float(lib.vpps_bleu_score(self._c, choice(smoothing, "smoothing", _SMOOTHINGS)))

    @staticmethod
    def signature(smoothing: Literal["none", "exp"] = "none") -> str:
        """A text that says how the score was computed, to be reported with the score."""
        return ffi.string(lib.vpps_bleu_signature(choice(smoothing, "smoothing", _SMOOTHINGS))).decode()

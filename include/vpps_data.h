/* vpps_data.h - data sets for dynamic networks: vocabularies, trees, sentences, lattices; and what measures results.
 *
 * Independent of the engine; conventions (status, messages, ownership) are those of vpps.h.
 *
 * Text, of whatever form, is UTF-8 or at least a superset of ASCII. A byte order mark at the beginning of any line is ignored (joined files
 * have several), and is not counted in the columns of messages. Lines end with LF or CR LF; UTF-16 is FORMAT. Files may be compressed by
 * gzip or zstd, whatever their names: their first bytes tell. Damaged ones are FORMAT, with no line in the message.
 */
#ifndef VPPS_DATA_H
#define VPPS_DATA_H

#include "vpps.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- vocabulary: strings to dense ids */

typedef struct vpps_vocab vpps_vocab;
#define VPPS_NO_WORD UINT32_MAX

VPPS_API vpps_status vpps_vocab_create(vpps_vocab **out);
VPPS_API void vpps_vocab_destroy(vpps_vocab *v);

/* The id of a word of `len` bytes; added (with the next id) when new. Fails with ARGUMENT (an empty word, or one that
 * holds NUL or a line feed), MEMORY. */
VPPS_API vpps_status vpps_vocab_add(vpps_vocab *v, const char *word, size_t len, uint32_t *id);

/* The id, or VPPS_NO_WORD. */
VPPS_API uint32_t vpps_vocab_find(const vpps_vocab *v, const char *word, size_t len);
VPPS_API uint32_t vpps_vocab_size(const vpps_vocab *v);
/* NUL-terminated, lives as long as v; NULL for an unknown id. */
VPPS_API const char *vpps_vocab_word(const vpps_vocab *v, uint32_t id);

/* All words joined by line feeds, in order of their ids; freed by the caller. And back. Fails with MEMORY, FORMAT
 * (an empty or repeated word). */
VPPS_API vpps_status vpps_vocab_to_text(const vpps_vocab *v, char **out);
VPPS_API vpps_status vpps_vocab_from_text(vpps_vocab **out, const char *text);

/* ---------------------------------------------------------------- labelled binary trees */

typedef struct vpps_tree_node {
    int32_t label;       /* class of this node; -1: none */
    int32_t left, right; /* index in the same tree, both smaller than this node's own; -1 at a leaf */
    uint32_t word;       /* leaf: id in the treebank's vocabulary; else VPPS_NO_WORD */
} vpps_tree_node;

/* Nodes in post-order: children before parents, the root last. */
typedef struct vpps_tree {
    const vpps_tree_node *nodes;
    uint32_t n_nodes, n_leaves;
} vpps_tree;

typedef struct vpps_treebank vpps_treebank;

VPPS_API vpps_status vpps_treebank_create(vpps_treebank **out);
VPPS_API void vpps_treebank_destroy(vpps_treebank *tb);
VPPS_API uint32_t vpps_treebank_size(const vpps_treebank *tb);
/* Valid until the treebank grows; all zero for an i that is out of range. */
VPPS_API vpps_tree vpps_treebank_tree(const vpps_treebank *tb, uint32_t i);
/* The line of its text that a tree begins in, from 1 (a binarised one: the constituents' line); 0 for a generated one,
 * and out of range. */
VPPS_API uint32_t vpps_treebank_line(const vpps_treebank *tb, uint32_t i);
VPPS_API const vpps_vocab *vpps_treebank_vocab(const vpps_treebank *tb);
/* 1 + the largest label, or as many labels as a generator gives; 0 when empty. */
VPPS_API uint32_t vpps_treebank_classes(const vpps_treebank *tb);

/* Append trees in the bracket format of the Stanford Sentiment Treebank (Socher et al. 2013):
 *     tree := '(' label word ')' | '(' label tree tree ')'       label := -1 .. 999
 * with white space between (also more than one, or none beside a bracket). A word is any bytes but white space, round
 * brackets and NUL (brackets are written -LRB- and -RRB-). A tree begins a line, and goes on in those that follow unless
 * '(' is their first character. Lines without anything are skipped. Fails with IO (cannot be opened or read), FORMAT
 * (message: file:line:column, the column in bytes from 1, what was expected, what was found), MEMORY. On failure the
 * treebank is as before. Nesting is limited by memory only. `name` stands for the file in messages. */
VPPS_API vpps_status vpps_treebank_read_file(vpps_treebank *tb, const char *path);
VPPS_API vpps_status vpps_treebank_read_text(vpps_treebank *tb, const char *name, const char *text, size_t len);

/* One tree as a line of text, in the format above, appended to `file`. Fails with IO, ARGUMENT, MEMORY. A write error
 * that the file's buffer hides shows when the caller closes the file. */
VPPS_API vpps_status vpps_treebank_write(const vpps_treebank *tb, uint32_t i, FILE *file);

/* ListOps (Nangia and Bowman 2018): nested MAX, MIN, MED and SM (sum modulo 10) over digits; the label of every node
 * is its value, 10 classes. Binarised left-branching as the authors do: [MAX 3 7 ] is ((([MAX 3) 7) ]). A leaf digit
 * and a complete list are labelled with their value; operator tokens, the closing bracket and partial lists have
 * label -1 (written -1 in text, which the reader accepts). */
typedef struct vpps_listops {
    uint64_t seed;
    uint32_t max_depth;              /* of nested lists, at most 1,000; 0: 4 */
    uint32_t max_arguments;          /* of a list, at least 2; 0: 5 */
    uint32_t min_leaves, max_leaves; /* trees outside are drawn again; at most 1,000,000; 0: 2 and 64 */
} vpps_listops;

/* Append n generated trees: equal options give equal trees on every machine. `options` NULL means all defaults. Fails
 * with ARGUMENT (an option out of its range, or no tree of such size found in 100,000 draws or 100 million leaves),
 * MEMORY; the treebank is then as before. */
VPPS_API vpps_status vpps_treebank_generate_listops(vpps_treebank *tb, const vpps_listops *options, uint32_t n);

/* Complete binary trees, all of one shape, as Tree-FC is measured on (Xu et al. 2018, "Cavs": 256 leaves). Levels fill
 * from the left, so any number of leaves makes one. Leaves are the words a to e, of which each tree prefers one by a
 * degree of its own; the root's label is the number of the word that occurs most often, at a tie the first of them: 5
 * classes. All other labels are -1. */
typedef struct vpps_complete_trees {
    uint64_t seed;
    uint32_t leaves; /* of each tree, at most 1,000,000; 0: 256 */
} vpps_complete_trees;

/* Append n of them: equal options give equal trees on every machine. `options` NULL means all defaults. Fails with
 * ARGUMENT (leaves), MEMORY; the treebank is then as before. */
VPPS_API vpps_status vpps_treebank_generate_complete(vpps_treebank *tb, const vpps_complete_trees *options, uint32_t n);

/* ---------------------------------------------------------------- the words a network knows
 *
 * A reader's vocabulary holds all words of its text. A network's vocabulary is made of the training text's: <unk>, then
 * the words that are frequent enough. Between the two lies a map of ids. */

/* How often each word occurs: counts[id] for all ids of the vocabulary; freed by the caller. Fails with MEMORY. */
VPPS_API vpps_status vpps_treebank_counts(const vpps_treebank *tb, uint32_t **counts);

/* A new vocabulary: <unk> (id 0), then the words of `all` with counts[id] >= min_count, in order of their ids there. A
 * word "<unk>" of `all` is id 0. counts NULL: all words. Fails with MEMORY. */
VPPS_API vpps_status vpps_vocab_cut(vpps_vocab **out, const vpps_vocab *all, const uint32_t *counts,
                                    uint32_t min_count);

/* ids[id of a word in `from`] = its id in `to`, or `missing` (0 for <unk>, VPPS_NO_WORD); freed by the caller. Fails
 * with MEMORY. */
VPPS_API vpps_status vpps_vocab_map(const vpps_vocab *from, const vpps_vocab *to, uint32_t missing, uint32_t **ids);

/* How many bytes, 1 to 4, the first character of text[0 .. len) has, len > 0: those of one UTF-8 code point (RFC 3629:
 * no surrogates, no overlong forms, nothing above U+10FFFF); a byte that begins no whole one is a character by itself.
 * So any bytes split into characters, always in the same way, and joined they are what they were. */
VPPS_API uint32_t vpps_utf8_character(const char *text, size_t len);

/* The characters of each word of a vocabulary, for networks that spell. */
typedef struct vpps_spellings vpps_spellings;

/* Spells all words that `words` has now. Fails with MEMORY. */
VPPS_API vpps_status vpps_spellings_create(vpps_spellings **out, const vpps_vocab *words);
VPPS_API void vpps_spellings_destroy(vpps_spellings *s);
/* The *n ids (in the vocabulary of characters) of the characters of a word, in order; NULL and 0 for an unknown word.
 * Lives as long as s. */
VPPS_API const uint32_t *vpps_spellings_word(const vpps_spellings *s, uint32_t word, uint32_t *n);
/* Characters by first occurrence. */
VPPS_API const vpps_vocab *vpps_spellings_vocab(const vpps_spellings *s);

/* ---------------------------------------------------------------- pretrained vectors of words */

typedef enum vpps_vectors_form {
    VPPS_VECTORS_TEXT,  /* text of word2vec and fastText (.vec): a line "words size", then a word and numbers a line */
    VPPS_VECTORS_GLOVE, /* text of GloVe: the same without the first line */
    VPPS_VECTORS_WORD2VEC, /* word2vec's binary form: the same first line, then each word, a space and its floats */
    VPPS_VECTORS_FASTTEXT  /* a model of fastText (.bin) that is not quantised */
} vpps_vectors_form;

typedef struct vpps_vectors_info {
    vpps_vectors_form form;
    uint64_t words; /* that have a vector; 0: the form does not say */
    uint32_t size;  /* elements of a vector, at most 65,536 */
} vpps_vectors_info;

/* What a file of vectors holds; its form is told by its beginning. Fails with IO, FORMAT, MEMORY. */
VPPS_API vpps_status vpps_vectors_describe(const char *path, vpps_vectors_info *info);

typedef struct vpps_vectors_found {
    uint32_t words;    /* of the vocabulary; those with a vector are found + composed */
    uint32_t found;    /* in the file */
    uint32_t composed; /* of n-grams of characters alone: words that a fastText model has not seen */
} vpps_vectors_found;

/* For each word of the vocabulary that the file has a vector for, values[id * size .. ] = the vector; the others stay as
 * they are. So a network begins with them (declare it, read, then create the handle):
 *     vpps_vectors_read("glove.txt", words, 300, vpps_param_values(model, embeddings), &found)
 * Words are compared byte by byte; of a word that is in the file twice, the first vector counts. A fastText model makes
 * a vector of a word's n-grams, too, except for "<unk>". The file is read once and never held whole. `found` may be NULL.
 * Fails with IO, ARGUMENT (vectors of another size), FORMAT (message: file:line:column for text, else which word or
 * part), MEMORY; some values may then be set. */
VPPS_API vpps_status vpps_vectors_read(const char *path, const vpps_vocab *words, uint32_t size, float *values,
                                       vpps_vectors_found *found);

/* ---------------------------------------------------------------- sentences: sequences of words, with tags or without,
 * or with a label
 *
 * The readers append. They share these rules: lines end with LF or CR LF, the last one need not; a NUL, or a CR that no
 * LF follows, is an error; white space (spaces, tabs, and the control characters VT and FF) parts words; all other bytes
 * that do not separate belong to words (a no-break space does, for one). All
 * fail with IO (a file cannot be opened or read), FORMAT (message: file:line:column, the column in bytes from 1, what
 * was expected, what was found), STATE (the preceding sentences are tagged, labelled or neither, and these are not),
 * MEMORY; the sentences and vocabularies are then as before. `name` stands for the file in messages. */

typedef struct vpps_sentences vpps_sentences;

typedef struct vpps_sentence {
    const uint32_t *words; /* n_words ids in the vocabulary of words */
    const uint32_t *tags;  /* n_words ids in the vocabulary of tags; NULL when the text has no tags */
    uint32_t n_words;
    const uint32_t *heads; /* of dependency trees: the word that each word depends on, from 1; 0: a root. Else NULL */
} vpps_sentence;

VPPS_API vpps_status vpps_sentences_create(vpps_sentences **out);
VPPS_API void vpps_sentences_destroy(vpps_sentences *s);
VPPS_API uint32_t vpps_sentences_size(const vpps_sentences *s);
VPPS_API uint64_t vpps_sentences_total_words(const vpps_sentences *s);
/* Valid until the sentences grow; all zero for an empty one and for an i that is out of range. */
VPPS_API vpps_sentence vpps_sentences_get(const vpps_sentences *s, uint32_t i);
VPPS_API const vpps_vocab *vpps_sentences_vocab(const vpps_sentences *s);
VPPS_API const vpps_vocab *vpps_sentences_tag_vocab(const vpps_sentences *s); /* empty without tags and labels */
/* The label of a sentence, an id in the vocabulary of tags; VPPS_NO_WORD without one, and out of range. */
VPPS_API uint32_t vpps_sentences_label(const vpps_sentences *s, uint32_t i);
/* The line of its text that a sentence begins in, from 1; 0 for a generated one, and out of range. */
VPPS_API uint32_t vpps_sentences_line(const vpps_sentences *s, uint32_t i);
/* The line of word k of a tagged sentence or a dependency tree; of another, and for a k that is out of range, as vpps_sentences_line. */
VPPS_API uint32_t vpps_sentences_word_line(const vpps_sentences *s, uint32_t i, uint32_t k);
/* As vpps_treebank_counts; a vocabulary's words that no sentence has count 0. */
VPPS_API vpps_status vpps_sentences_counts(const vpps_sentences *s, uint32_t **counts);

/* word|TAG (WikiNER): a sentence a line, tokens separated by white space (also more than one; at the ends of a line too), a
 * token split at its last '|'. Lines without tokens are skipped. */
VPPS_API vpps_status vpps_sentences_read_tagged_file(vpps_sentences *s, const char *path);
VPPS_API vpps_status vpps_sentences_read_tagged_text(vpps_sentences *s, const char *name, const char *text, size_t len);

/* A label, a tab and a sentence in each line, words separated by white space without another tab; it may also stand at
 * the ends of either part. A label may hold spaces. Lines without words are skipped. */
VPPS_API vpps_status vpps_sentences_read_labelled_file(vpps_sentences *s, const char *path);
VPPS_API vpps_status vpps_sentences_read_labelled_text(vpps_sentences *s, const char *name, const char *text,
                                                       size_t len);

/* The columns of the CoNLL shared tasks: a token a line, one or more lines of nothing but white space between sentences.
 * Every line has as many columns as the first; where word and tag are both given by numbers, the first line of its sentence.
 * Lines whose first column is -DOCSTART- (CoNLL-2003) part sentences, too. White space around a column is left out. */
typedef struct vpps_columns {
    uint32_t word; /* which column holds the word, from 1; 0: the first, in CoNLL-U FORM */
    uint32_t tag;  /* which the tag, from 1; 0: the last, in CoNLL-U UPOS */
    bool tabs;     /* columns end at each single tab, and words may hold spaces; else at runs of white space */
    bool comments; /* a line that begins with '#' is left out when its columns do not fit: when they are not as many as
                      those of the lines that begin otherwise, or their ID is none; else it is a token like others */
    bool conllu;   /* CoNLL-U, which has comments: the lines of multiword tokens (ID 3-4) and of empty nodes (5.1) are
                      left out. Its columns are ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC, or those that the
                      first line names, as "# global.columns = ID FORM UPOS" (CoNLL-U Plus). They end at tabs, or, where
                      the first line with columns has no tab, at runs of white space. */
    const char *word_name, *tag_name; /* with conllu: a column's name, instead of its number; NULL: none */
} vpps_columns;

/* `columns` NULL: all zero. Fails with ARGUMENT too (word and tag in the same column, a name without conllu). */
VPPS_API vpps_status vpps_sentences_read_columns_file(vpps_sentences *s, const char *path, const vpps_columns *columns);
VPPS_API vpps_status vpps_sentences_read_columns_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                                      const vpps_columns *columns);

/* Dependency trees in CoNLL-U (universaldependencies.org/format.html): ten columns with single tabs between, a word a line,
 * blank lines between sentences. The columns ID, FORM, HEAD and DEPREL are read. Lines that begin with '#' are comments; the lines of
 * multiword tokens (ID 3-4) and of empty nodes (ID 5.1) are left out. The words of a sentence are numbered 1, 2, ...; a
 * HEAD is the number of another word, or 0 for a root. Trees need not be projective. FORMAT: a HEAD that is no word's number, words
 * that depend on each other in a circle. A tag of a sentence is a word's relation, its DEPREL. */
typedef struct vpps_dependencies {
    bool cut_subtypes; /* nsubj:pass is nsubj */
    bool heads_only;   /* neither relations nor labels are read: the sentences have no tags */
    const char *label; /* sentences are labelled instead of tagged: the label of a sentence is what its comment
                          "# LABEL = ..." says, VPPS_NO_WORD without one. A sentence then has one root. NULL: they are not */
} vpps_dependencies;

/* `dependencies` NULL: all zero. */
VPPS_API vpps_status vpps_sentences_read_dependencies_file(vpps_sentences *s, const char *path,
                                                           const vpps_dependencies *dependencies);
VPPS_API vpps_status vpps_sentences_read_dependencies_text(vpps_sentences *s, const char *name, const char *text,
                                                           size_t len, const vpps_dependencies *dependencies);

/* Plain text: a sentence a line, words separated by white space (also more than one; at the ends of a line too). */
typedef struct vpps_lines {
    const char *end_word; /* appended to every sentence, e.g. "<eos>"; NULL: nothing. A line's last word that is the end
                             word already is this one; elsewhere in a line it becomes the word "<unk>". */
    bool keep_empty;      /* a line without words is a sentence (of 0 words, or the end word); else it is skipped */
} vpps_lines;

/* `lines` NULL: all zero. Fails with ARGUMENT too (an end word that is empty or holds white space). */
VPPS_API vpps_status vpps_sentences_read_lines_file(vpps_sentences *s, const char *path, const vpps_lines *lines);
VPPS_API vpps_status vpps_sentences_read_lines_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                                    const vpps_lines *lines);

/* Parallel text, two files of plain text: sentence i of `source` and of `target` are a pair. */
typedef struct vpps_parallel {
    const char *end_word; /* appended to every sentence of the target, as in vpps_lines; NULL: nothing */
    bool skip_empty;      /* pairs with a line that has no words are left out; else the first one is FORMAT */
} vpps_parallel;

/* `parallel` NULL: all zero. Fails as vpps_sentences_read_lines_file does, with FORMAT when one file has more lines
 * (the message gives both counts; lines without words at the end of either do not count), with STATE unless both have
 * equally many sentences before, with ARGUMENT when they are the same. */
VPPS_API vpps_status vpps_sentences_read_parallel_files(vpps_sentences *source, vpps_sentences *target,
                                                        const char *source_path, const char *target_path,
                                                        const vpps_parallel *parallel);
VPPS_API vpps_status vpps_sentences_read_parallel_texts(vpps_sentences *source, vpps_sentences *target,
                                                        const char *source_name, const char *source_text,
                                                        size_t source_len, const char *target_name,
                                                        const char *target_text, size_t target_len,
                                                        const vpps_parallel *parallel);

/* ---------------------------------------------------------------- a small language, generated
 *
 * Sentences of 3 to 25 words with names in them, for networks to learn when no data is at hand: 227 common words, and
 * some 1,700 names of persons, places and organisations, most of them rare, whose endings and neighbours on both sides
 * tell what they are. Words have 2 to 7 small letters. Tags are B- and I- with PER, LOC or ORG after them, and O. The
 * language is always the same; `seed` draws sentences. The translation has other words, one for each common word (the
 * others stay as they are), in another order: adjectives after nouns, verbs at the end of their clause. */
typedef struct vpps_language {
    uint64_t seed;
    bool characters; /* sentences (not translations) are written without spaces: every word is a character, tags are
                        those of characters */
    bool tags;       /* sentences are tagged */
    bool labels;     /* sentences are labelled by what their first name is: PER, LOC or ORG; NONE: they have none */
    const char
        *end_word; /* appended to every translation, or where none is asked for, to every sentence; may be NULL */
} vpps_language;

/* Append n sentences to s, and, unless NULL, their translations (without tags) to `translation`, and all words of the
 * language, names among them, to `lexicon`. Equal options give equal sentences on every machine; a larger n goes on
 * where a smaller one ends. `options` NULL: all zero. Fails with STATE as the readers do (parallel ones with a
 * translation), with ARGUMENT (an end word that is empty or holds a space or line end; tags with an end word in s; tags and
 * labels; s and `translation` are the same), MEMORY; all three are then as before. */
VPPS_API vpps_status vpps_sentences_generate(vpps_sentences *s, vpps_sentences *translation, vpps_vocab *lexicon,
                                             const vpps_language *options, uint32_t n);

/* ---------------------------------------------------------------- lattices of characters and words
 *
 * For a sentence of n characters: node 0 is its start, node i stands after character i, with that character's tag. An
 * arc into node i is character i, from node i - 1, or a word, from a node before that: the characters in between. */

typedef struct vpps_lattice_arc {
    uint32_t from;     /* a node before the arc's */
    uint32_t id;       /* of the character, or of the word */
    bool is_character; /* whether from is the node just before */
} vpps_lattice_arc;

typedef struct vpps_lattice {
    uint32_t n_nodes;             /* at least 1 */
    const uint32_t *tags;         /* n_nodes; that of node 0 means nothing */
    const uint32_t *first_arc;    /* n_nodes + 1: arcs[first_arc[i] .. first_arc[i + 1]) go into node i */
    const vpps_lattice_arc *arcs; /* none into node 0; into each other one character, first, then words */
} vpps_lattice;

typedef struct vpps_lattices vpps_lattices;

VPPS_API vpps_status vpps_lattices_create(vpps_lattices **out);
VPPS_API void vpps_lattices_destroy(vpps_lattices *l);
VPPS_API uint32_t vpps_lattices_size(const vpps_lattices *l);
/* Valid until the lattices grow; all zero for an i that is out of range. */
VPPS_API vpps_lattice vpps_lattices_get(const vpps_lattices *l, uint32_t i);
/* The line of its text that a lattice begins in, from 1 (a built one: the sentence's line); 0 for a generated one, and
 * out of range. */
VPPS_API uint32_t vpps_lattices_line(const vpps_lattices *l, uint32_t i);
/* 1 + the largest id, what a table of embeddings or a classifier needs; 0: none. */
VPPS_API uint32_t vpps_lattices_tags(const vpps_lattices *l);
VPPS_API uint32_t vpps_lattices_characters(const vpps_lattices *l);
VPPS_API uint32_t vpps_lattices_words(const vpps_lattices *l);

/* Append lattices of ids, as the ED-Batch benchmark (Chen et al. 2023) ships them: whole numbers between white space
 *     number of lattices, then for each: number of nodes n, n tags, then for each node: number of arcs k, k times: from id
 * Numbers are below 2^32 - 1. Fails with IO, FORMAT (also what breaks a promise of vpps_lattice), MEMORY; the lattices
 * are then as before. */
VPPS_API vpps_status vpps_lattices_read_file(vpps_lattices *l, const char *path);
VPPS_API vpps_status vpps_lattices_read_text(vpps_lattices *l, const char *name, const char *text, size_t len);

/* Adds the words of a lexicon to a vocabulary: the first column of each line, which ends at a tab, or in a line without
 * one at white space ("word frequency POS" of jieba's dictionaries, "word<tab>frequency" of THULAC's; what follows the
 * word may be missing). Lines of nothing but white space are skipped. Fails with IO, FORMAT (white space before a word,
 * NUL, a CR without LF), MEMORY; the vocabulary is then as before. */
VPPS_API vpps_status vpps_lexicon_read_file(vpps_vocab *words, const char *path);
VPPS_API vpps_status vpps_lexicon_read_text(vpps_vocab *words, const char *name, const char *text, size_t len);

/* Words of a built lattice span so many characters. */
#define VPPS_LATTICE_WORD_MIN 2
#define VPPS_LATTICE_WORD_MAX 8

/* Append the lattice of each sentence, whose words are single characters (or other pieces): every word of the lexicon
 * that some of them joined make is an arc. Ids are those of the sentences' vocabularies (characters, tags; without tags
 * all are 0) and of `lexicon`; arcs into a node begin with the character, then words from short to long. Fails with
 * MEMORY; the lattices are then as before. */
VPPS_API vpps_status vpps_lattices_build(vpps_lattices *l, const vpps_sentences *characters, const vpps_vocab *lexicon);

/* ---------------------------------------------------------------- constituents: n-ary trees */

typedef struct vpps_constituent {
    uint32_t label;      /* id in the vocabulary of labels: phrase, or part of speech */
    uint32_t n_children; /* 0: a leaf, a part of speech with its word */
    uint32_t n_nodes;    /* of the subtree, this node included */
    uint32_t word;       /* leaf: id in the vocabulary of words; else VPPS_NO_WORD */
} vpps_constituent;

/* Nodes in post-order. The last child of node i is c = i - 1, the one before a child c is c - nodes[c].n_nodes. */
typedef struct vpps_constituent_tree {
    const vpps_constituent *nodes;
    uint32_t n_nodes, n_leaves;
} vpps_constituent_tree;

typedef struct vpps_constituents vpps_constituents;

/* How a reader treats labels: a function tag is a suffix of capital letters and digits after '-' or '=': NP-SBJ-1 becomes NP, but -LRB-,
 * very-good and S|<VP-.> have no function tags. A null element is a leaf with the label -NONE- whose word is 0 or begins with '*'. A
 * constituent or a tree that holds nothing but null elements is left out with them. */
typedef enum vpps_labels {
    VPPS_LABELS_RAW,  /* everything stays as written */
    VPPS_LABELS_CUT,  /* function tags and null elements are left out */
    VPPS_LABELS_WHOLE /* null elements are left out, labels stay as written */
} vpps_labels;

VPPS_API vpps_status vpps_constituents_create(vpps_constituents **out, vpps_labels form);
VPPS_API void vpps_constituents_destroy(vpps_constituents *c);
VPPS_API uint32_t vpps_constituents_size(const vpps_constituents *c);
/* Valid until the constituents grow; all zero for an i that is out of range. */
VPPS_API vpps_constituent_tree vpps_constituents_tree(const vpps_constituents *c, uint32_t i);
VPPS_API uint32_t vpps_constituents_line(const vpps_constituents *c, uint32_t i); /* as vpps_treebank_line */
VPPS_API const vpps_vocab *vpps_constituents_vocab(const vpps_constituents *c);   /* words */
VPPS_API const vpps_vocab *vpps_constituents_labels(const vpps_constituents *c);  /* phrases and parts of speech */

/* Do the labels look like the Penn Treebank's: are there NP and VP, with function tags or without? */
VPPS_API bool vpps_constituents_look_penn(const vpps_constituents *c);
/* Leaves out the function tags of what was read so far; the vocabulary of labels gets new ids for those that are left. Fails
 * with MEMORY; all is then as before. */
VPPS_API vpps_status vpps_constituents_cut(vpps_constituents *c);

/* Append trees in the brackets of the Penn Treebank:
 *     tree := '(' label tree tree... ')' | '(' label word ')'
 * with white space between (also more than one, or none beside a bracket). Labels and words are any bytes but white
 * space, round brackets and NUL. The outermost bracket's label may be missing: it is ROOT then. Lines and failures are as
 * in vpps_treebank_read_file. */
VPPS_API vpps_status vpps_constituents_read_file(vpps_constituents *c, const char *path);
VPPS_API vpps_status vpps_constituents_read_text(vpps_constituents *c, const char *name, const char *text, size_t len);

typedef enum vpps_branching {
    VPPS_LEFT_BRANCHING, /* (X a b c) is (X (X* a b) c) */
    VPPS_RIGHT_BRANCHING /* (X a b c) is (X a (X* b c)) */
} vpps_branching;

/* Append all trees as binary ones to `tb`. A chain of nodes with one child is one node, its label joined by '+' from
 * the top (ROOT+S); inner nodes that are new are marked with '*' (no memory of siblings: Markov order 0). Labels are ids
 * in `labels`, which grows; give the same vocabulary for all parts of the data. Fails with MEMORY; both are then as
 * before. Written as text, trees with more than 1,000 classes cannot be read back. */
VPPS_API vpps_status vpps_constituents_binarise(const vpps_constituents *c, vpps_branching branching,
                                                vpps_vocab *labels, vpps_treebank *tb);

/* ---------------------------------------------------------------- metrics */

/* Precision and recall of chunks (entities), as conlleval, the script of the CoNLL shared tasks, counts them (Tjong Kim
 * Sang and Buchholz 2000). A tag is O, or a letter and a type with '-' between them ("I-PER"; the tag "I" has the type ""). The letters
 * are B, I, E and S of IOB1, IOB2 and IOBES. Other schemes are mapped to them: M of BMES to I, L and U of BILOU to E and S, W of BMEWO
 * to S. A chunk starts at B or S, after E, S or O, and where the type changes. It ends after E or S, before B, S or O, and where the
 * type changes. A predicted chunk is correct if its start, its end and its type are. A tag of no scheme counts as O. */
typedef struct vpps_f1 vpps_f1;

typedef struct vpps_f1_counts {
    uint64_t gold, predicted, correct; /* chunks */
} vpps_f1_counts;

/* Are these tags of chunks? Yes if tags outside every scheme are few (less than twice as many as those of a scheme, or, where no tag has a
 * type, less than half as many) and O is not the only tag. */
VPPS_API bool vpps_f1_applies(const vpps_vocab *tags);

/* The tags' words are used as long as the vpps_f1 lives; ids that `tags` gets later are unknown to it. Fails with
 * MEMORY. */
VPPS_API vpps_status vpps_f1_create(vpps_f1 **out, const vpps_vocab *tags);
VPPS_API void vpps_f1_destroy(vpps_f1 *f);
/* Counts a sentence: n tag ids each. Fails with ARGUMENT (an id out of range); nothing is counted then. */
VPPS_API vpps_status vpps_f1_add(vpps_f1 *f, uint32_t n, const uint32_t *gold, const uint32_t *predicted);
VPPS_API uint32_t vpps_f1_types(const vpps_f1 *f);
/* The name of a type, below vpps_f1_types, in order of their first tag; NULL out of range. */
VPPS_API const char *vpps_f1_type(const vpps_f1 *f, uint32_t type);
/* The counts of one type (all zero out of range); of all types together. */
VPPS_API vpps_f1_counts vpps_f1_type_counts(const vpps_f1 *f, uint32_t type);
VPPS_API vpps_f1_counts vpps_f1_all_counts(const vpps_f1 *f);
/* How many tags were counted, and how many of them were right (may be NULL). */
VPPS_API uint64_t vpps_f1_tokens(const vpps_f1 *f, uint64_t *right);
/* 0 to 1; 0 where nothing is to be divided by. */
VPPS_API double vpps_f1_precision(vpps_f1_counts counts);
VPPS_API double vpps_f1_recall(vpps_f1_counts counts);
VPPS_API double vpps_f1_score(vpps_f1_counts counts);

/* Corpus BLEU (Papineni et al. 2002): n-grams up to 4, brevity penalty, one reference a sentence. Words are compared by
 * id, as they are: no tokenisation, no change of case. Start from all zero, add every sentence. */
typedef struct vpps_bleu {
    uint64_t matches[4], possible[4]; /* n-grams of the hypotheses: found in the reference (clipped), and all */
    uint64_t hypothesis_words, reference_words;
} vpps_bleu;

/* Ids are of one vocabulary that has all words of the reference (a network's <unk> would match rare words); VPPS_NO_WORD, for words of the
 * hypothesis that the vocabulary lacks, matches nothing. Time grows with the product of the two lengths. Fails with MEMORY; nothing is
 * counted then. */
VPPS_API vpps_status vpps_bleu_add(vpps_bleu *b, uint32_t n_hypothesis, const uint32_t *hypothesis,
                                   uint32_t n_reference, const uint32_t *reference);

typedef enum vpps_bleu_smoothing {
    VPPS_BLEU_NONE, /* 0 as soon as one of the four precisions is */
    VPPS_BLEU_EXP /* the k-th length without a match counts 1 / 2^k matches (NIST's mteval 13a, sacreBLEU's default) */
} vpps_bleu_smoothing;

/* 0 to 100. 0 without any match, and when no hypothesis has 4 words. */
VPPS_API double vpps_bleu_score(const vpps_bleu *b, vpps_bleu_smoothing smoothing);
/* How a score was made, to be shown beside it (Post 2018), e.g. "BLEU|tok:none|case:as-is|refs:1|smooth:none". */
VPPS_API const char *vpps_bleu_signature(vpps_bleu_smoothing smoothing);

#ifdef __cplusplus
}
#endif
#endif

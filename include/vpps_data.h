/* vpps_data.h - data sets for dynamic networks (vocabularies, trees, sentences, lattices), and measures of results (F1, BLEU).
 *
 * These calls need no training engine. The conventions of vpps.h (status, messages, ownership) apply.
 *
 * All text is UTF-8, or another superset of ASCII. A byte order mark at the beginning of any line is ignored (joined files have several),
 * and is not counted in the columns of messages. Lines end with LF or CR LF; UTF-16 fails with FORMAT. Files compressed by gzip or zstd are
 * recognised by their first bytes. A damaged compressed file fails with FORMAT, with no line in the message. */
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
/* Gives the id of a word of `len` bytes; a word that the vocabulary lacks is added with the next id. Fails with ARGUMENT (an
 * empty word, or one that holds NUL or a line feed), MEMORY. */
VPPS_API vpps_status vpps_vocab_add(vpps_vocab *v, const char *word, size_t len, uint32_t *id);
/* Returns the id of a word of `len` bytes, or VPPS_NO_WORD if the vocabulary lacks the word. */
VPPS_API uint32_t vpps_vocab_find(const vpps_vocab *v, const char *word, size_t len);
VPPS_API uint32_t vpps_vocab_size(const vpps_vocab *v);
/* Returns the word with this id as a NUL-terminated string that lives as long as v; NULL for an unknown id. */
VPPS_API const char *vpps_vocab_word(const vpps_vocab *v, uint32_t id);
/* Gives all words joined by line feeds, in order of their ids, as a string that the caller frees. Fails with MEMORY. */
VPPS_API vpps_status vpps_vocab_to_text(const vpps_vocab *v, char **out);
/* Makes a vocabulary of words joined by line feeds. Fails with FORMAT (an empty or repeated word), MEMORY. */
VPPS_API vpps_status vpps_vocab_from_text(vpps_vocab **out, const char *text);

/* ---------------------------------------------------------------- labelled binary trees */
typedef struct vpps_tree_node {
    int32_t label;       /* class of this node; -1: none */
    int32_t left, right; /* the children's indices in the tree, smaller than this node's own; -1 at a leaf */
    uint32_t word;       /* the id of a leaf's word in the treebank's vocabulary; VPPS_NO_WORD at other nodes */
} vpps_tree_node;
/* A binary tree whose nodes are in post-order: children before parents, the root last. */
typedef struct vpps_tree {
    const vpps_tree_node *nodes;
    uint32_t n_nodes, n_leaves;
} vpps_tree;

typedef struct vpps_treebank vpps_treebank;
VPPS_API vpps_status vpps_treebank_create(vpps_treebank **out);
VPPS_API void vpps_treebank_destroy(vpps_treebank *tb);
VPPS_API uint32_t vpps_treebank_size(const vpps_treebank *tb);
/* Returns tree i, whose nodes are valid until the treebank grows; all zero if i is out of range. */
VPPS_API vpps_tree vpps_treebank_tree(const vpps_treebank *tb, uint32_t i);
/* Returns the line of the text, from 1, in which tree i begins; for a binarised tree, the line of its tree of constituents.
 * Returns 0 for a generated tree, or if i is out of range. */
VPPS_API uint32_t vpps_treebank_line(const vpps_treebank *tb, uint32_t i);
VPPS_API const vpps_vocab *vpps_treebank_vocab(const vpps_treebank *tb);
/* Returns 1 + the largest label, or the number of labels that a generator gives; 0 for an empty treebank. */
VPPS_API uint32_t vpps_treebank_classes(const vpps_treebank *tb);

/* Append trees in the bracket format of the Stanford Sentiment Treebank (Socher et al. 2013) to the treebank:
 *     tree := '(' label word ')' | '(' label tree tree ')'       label := -1 .. 999
 * White space separates labels, words and trees (any amount; none is needed beside a bracket). A word is any bytes but white
 * space, round brackets and NUL (brackets are written -LRB- and -RRB-). A tree begins at the start of a line, and may go on in
 * the next lines if their first character is not '('. Empty lines are skipped. Fail with IO (cannot be opened or read), FORMAT
 * (message: file:line:column, the column in bytes from 1, what was expected, what was found), MEMORY. On failure the
 * treebank is as before. Nesting is limited by memory only. `name` stands for the file in messages. */
VPPS_API vpps_status vpps_treebank_read_file(vpps_treebank *tb, const char *path);
VPPS_API vpps_status vpps_treebank_read_text(vpps_treebank *tb, const char *name, const char *text, size_t len);

/* Appends tree i to `file` as a line in the bracket format of vpps_treebank_read_file. Fails with IO, ARGUMENT, MEMORY. A write
 * error that the file's buffer hides shows when the caller closes the file. */
VPPS_API vpps_status vpps_treebank_write(const vpps_treebank *tb, uint32_t i, FILE *file);
/* Options of generated ListOps expressions (Nangia and Bowman 2018): nested lists of digits under MAX, MIN, MED (median) and SM (sum
 * modulo 10). The lists are binarised left-branching as the authors do: [MAX 3 7 ] is ((([MAX 3) 7) ]). A digit and a complete list
 * have their value as label (10 classes); operators, closing brackets and incomplete lists have label -1. */
typedef struct vpps_listops {
    uint64_t seed;
    uint32_t max_depth;              /* the most levels of nested lists, at most 1,000; 0: 4 */
    uint32_t max_arguments;          /* the most arguments of an operator, at least 2; 0: 5 */
    uint32_t min_leaves, max_leaves; /* least and greatest number of leaves of a tree, up to 1,000,000; 0: 2, and 64 */
} vpps_listops;
/* Appends n generated ListOps trees to the treebank: equal options give equal trees on every machine. `options` NULL means all defaults.
 * Fails with ARGUMENT (an option out of its range; or 100,000 draws, or 100 million leaves, gave no tree with min_leaves to max_leaves
 * leaves), MEMORY; the treebank is then as before. */
VPPS_API vpps_status vpps_treebank_generate_listops(vpps_treebank *tb, const vpps_listops *options, uint32_t n);

/* Options of generated complete binary trees, all of one shape, on which Tree-FC is measured (Xu et al. 2018, "Cavs": 256 leaves). The
 * lowest level is filled from the left, so any number of leaves makes a tree. Leaves are random words from a to e. The root's label is the
 * number of the tree's most frequent word, the first of them at a tie (5 classes). All other labels are -1. */
typedef struct vpps_complete_trees {
    uint64_t seed;
    uint32_t leaves; /* number of leaves of each tree, at most 1,000,000; 0: 256 */
} vpps_complete_trees;
/* Appends n generated complete trees to the treebank: equal options give equal trees on every machine. `options` NULL means all
 * defaults. Fails with ARGUMENT (leaves), MEMORY; the treebank is then as before. */
VPPS_API vpps_status vpps_treebank_generate_complete(vpps_treebank *tb, const vpps_complete_trees *options, uint32_t n);

/* ---------------------------------------------------------------- the words a network knows
 *
 * The vocabulary of a treebank or of sentences holds all words of the text that was read. A network's vocabulary holds <unk>, then
 * the words of the training text that are frequent enough. vpps_vocab_map translates ids of the first to ids of the second. */

/* Gives the number of times that each word occurs, indexed by the word's id, in an array that the caller frees. Fails with MEMORY. */
VPPS_API vpps_status vpps_treebank_counts(const vpps_treebank *tb, uint32_t **counts);
/* Makes a vocabulary of <unk> (id 0) and the words of `all` with counts[id] >= min_count, in the order of `all`. The word
 * "<unk>" of `all` also gets id 0. counts NULL: all words. Fails with MEMORY. */
VPPS_API vpps_status vpps_vocab_cut(vpps_vocab **out, const vpps_vocab *all, const uint32_t *counts,
                                    uint32_t min_count);

/* Gives for each word of `from`, indexed by its id, the word's id in `to`, or `missing` (0 for <unk>, or VPPS_NO_WORD) if `to`
 * lacks the word. The caller frees *ids. Fails with MEMORY. */
VPPS_API vpps_status vpps_vocab_map(const vpps_vocab *from, const vpps_vocab *to, uint32_t missing, uint32_t **ids);

/* Returns the number of bytes, 1 to 4, of the first character of text[0 .. len), len > 0: the bytes of one UTF-8 code point (RFC
 * 3629: no surrogates, no overlong forms, nothing above U+10FFFF). A byte that begins no valid code point is a character by
 * itself, so that any bytes can be split into characters. */
VPPS_API uint32_t vpps_utf8_character(const char *text, size_t len);

/* The characters of each word of a vocabulary, for networks that read words character by character. */
typedef struct vpps_spellings vpps_spellings;
/* Splits all words that the vocabulary `words` has now into characters. Fails with MEMORY. */
VPPS_API vpps_status vpps_spellings_create(vpps_spellings **out, const vpps_vocab *words);
VPPS_API void vpps_spellings_destroy(vpps_spellings *s);
/* Returns ids of a word's *n characters, in order, as an array that lives as long as s; unknown word: NULL, 0. */
VPPS_API const uint32_t *vpps_spellings_word(const vpps_spellings *s, uint32_t word, uint32_t *n);
/* Returns the vocabulary of characters, whose ids follow the characters' first occurrences. */
VPPS_API const vpps_vocab *vpps_spellings_vocab(const vpps_spellings *s);

/* ---------------------------------------------------------------- pretrained vectors of words */
typedef enum vpps_vectors_form {
    VPPS_VECTORS_TEXT,  /* text of word2vec and fastText (.vec): a line "words size", then a word and numbers a line */
    VPPS_VECTORS_GLOVE, /* text of GloVe: a word and its numbers a line */
    VPPS_VECTORS_WORD2VEC /* word2vec's binary form: a line "words size", then each word, a space and its floats */
} vpps_vectors_form;

typedef struct vpps_vectors_info {
    vpps_vectors_form form;
    uint64_t words; /* number of words, as the file's header says; 0: the file has no such header (GloVe) */
    uint32_t size;  /* elements of a vector, at most 65,536 */
} vpps_vectors_info;
/* Describes a file of word vectors, whose form is recognised by the file's beginning. Fails with IO, FORMAT, MEMORY. */
VPPS_API vpps_status vpps_vectors_describe(const char *path, vpps_vectors_info *info);
typedef struct vpps_vectors_found {
    uint32_t words; /* number of words in the vocabulary, with a vector or without */
    uint32_t found; /* number of words whose vector is in the file */
} vpps_vectors_found;
/* Copies the vector of each word of the vocabulary that the file has to values[id * size ..]; other words' values stay. To begin
 * with pretrained embeddings, declare the network, read the vectors, then create the handle:
 *     vpps_vectors_read("glove.txt", words, 300, vpps_param_values(model, embeddings), &found)
 * Words are compared byte by byte; the first vector of a repeated word counts. The file is read once and never held whole.
 * `found` may be NULL. Fails with IO, ARGUMENT (vectors of another size), FORMAT (message: file:line:column for text, else the
 * word; fastText's binary models are refused), MEMORY; some values may then be set. */
VPPS_API vpps_status vpps_vectors_read(const char *path, const vpps_vocab *words, uint32_t size, float *values,
                                       vpps_vectors_found *found);

/* ---------------------------------------------------------------- sentences: sequences of words, with tags or without,
 * or with a label
 *
 * The functions that read sentences append to earlier ones. They share these rules: lines end with LF or CR LF (the last line
 * need not); a NUL, or a CR without LF, is an error; white space (spaces, tabs, and the control characters VT and FF) separates
 * words; all other bytes, a no-break space too, belong to words. All fail with IO (a file cannot be opened or read), FORMAT
 * (message: file:line:column, the column in bytes from 1, what was expected, what was found), STATE (tagged, labelled and plain
 * sentences cannot be mixed), MEMORY; the sentences and vocabularies are then as before. `name` stands for the file in messages. */

typedef struct vpps_sentences vpps_sentences;
typedef struct vpps_sentence {
    const uint32_t *words; /* the sentence's n_words words, as ids in the vocabulary of words */
    const uint32_t *tags;  /* the words' tags, as ids in the vocabulary of tags; NULL if the text has no tags */
    uint32_t n_words;
    const uint32_t *heads; /* dependency trees: the number, from 1, of each word's head; 0: a root. Else NULL */
} vpps_sentence;
VPPS_API vpps_status vpps_sentences_create(vpps_sentences **out);
VPPS_API void vpps_sentences_destroy(vpps_sentences *s);
VPPS_API uint32_t vpps_sentences_size(const vpps_sentences *s);
VPPS_API uint64_t vpps_sentences_total_words(const vpps_sentences *s);
/* Returns sentence number i; its arrays are valid until the sentences grow. All zero if the sentence is empty or i out of range. */
VPPS_API vpps_sentence vpps_sentences_get(const vpps_sentences *s, uint32_t i);
VPPS_API const vpps_vocab *vpps_sentences_vocab(const vpps_sentences *s);
VPPS_API const vpps_vocab *vpps_sentences_tag_vocab(const vpps_sentences *s); /* vocabulary of tags, or of labels */
/* Returns the label of sentence i, an id in the vocabulary of tags; VPPS_NO_WORD without a label, or if i is out of range. */
VPPS_API uint32_t vpps_sentences_label(const vpps_sentences *s, uint32_t i);
/* Returns the line of the text, from 1, in which sentence i begins; 0 for a generated sentence, or if i is out of range. */
VPPS_API uint32_t vpps_sentences_line(const vpps_sentences *s, uint32_t i);
/* Returns the line of word k of a tagged sentence or a dependency tree; for other sentences and words, the sentence's first line. */
VPPS_API uint32_t vpps_sentences_word_line(const vpps_sentences *s, uint32_t i, uint32_t k);
/* Gives the number of times that each word occurs, indexed by the word's id, in an array that the caller frees. Fails with MEMORY. */
VPPS_API vpps_status vpps_sentences_counts(const vpps_sentences *s, uint32_t **counts);
/* Append tagged text, word|TAG (WikiNER): a sentence a line, tokens separated by any amount of white space. A token is split at its
 * last '|'. Lines without tokens are skipped. */
VPPS_API vpps_status vpps_sentences_read_tagged_file(vpps_sentences *s, const char *path);
VPPS_API vpps_status vpps_sentences_read_tagged_text(vpps_sentences *s, const char *name, const char *text, size_t len);

/* Append labelled text: in each line a label, a tab, and a sentence whose words are separated by white space other than tabs.
 * White space around label and sentence is ignored. A label may hold spaces. Lines without words are skipped. */
VPPS_API vpps_status vpps_sentences_read_labelled_file(vpps_sentences *s, const char *path);
VPPS_API vpps_status vpps_sentences_read_labelled_text(vpps_sentences *s, const char *name, const char *text,
                                                       size_t len);

/* Options of text in columns, as of the CoNLL shared tasks: a token a line; blank lines, or lines whose first column is -DOCSTART-
 * (CoNLL-2003), separate sentences. All lines of the text have equally many columns, or, if `word` and `tag` are both given,
 * all lines of each sentence. White space around a column is ignored. */
typedef struct vpps_columns {
    /* number of the column that holds the word, from 1. 0: in CoNLL-U the column FORM, else the first column */
    uint32_t word;
    /* number of the column that holds the tag, from 1. 0: in CoNLL-U the column UPOS, else the last column */
    uint32_t tag;
    bool tabs; /* whether columns end at each single tab, so that words may hold spaces; else at runs of white space */
    /* Whether a line that begins with '#' is a comment if it has another number of columns than the other lines, or no valid ID. */
    bool comments;
    /* Whether the text is CoNLL-U. Comments and lines of multiword tokens (ID 3-4) and of empty nodes (5.1) are left
     * out. Columns: ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC, or as line 1 says: "# global.columns = ID
     * FORM UPOS" (CoNLL-U Plus). They end at tabs or, if the first line with columns has none, at white space. */
    bool conllu;
    const char *word_name, *tag_name; /* with conllu: a column's name, instead of its number; NULL: none */
} vpps_columns;
/* Append sentences from text in columns. `columns` NULL: a vpps_columns of zeros. Fail with IO, FORMAT, STATE, MEMORY, as all functions that read
 * sentences do, and with ARGUMENT (*columns has the same column for word and tag, or a word_name or tag_name without conllu). */
VPPS_API vpps_status vpps_sentences_read_columns_file(vpps_sentences *s, const char *path, const vpps_columns *columns);
VPPS_API vpps_status vpps_sentences_read_columns_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                                      const vpps_columns *columns);

/* Options of dependency trees in CoNLL-U (universaldependencies.org/format.html): a word a line in ten columns separated by single tabs,
 * blank lines between sentences. The columns ID, FORM, HEAD and DEPREL are read. Lines that begin with '#' are comments; lines of
 * multiword tokens (ID 3-4) and of empty nodes (ID 5.1) are left out. The words of a sentence are numbered 1, 2, ...; a HEAD is the
 * number of another word, or 0 for a root. Trees need not be projective. A HEAD that is no word's number, and words that depend on each
 * other in a circle, fail with FORMAT. A word's tag is its relation, DEPREL. */
typedef struct vpps_dependencies {
    bool cut_subtypes; /* whether to cut relations at ':', so that nsubj:pass becomes nsubj */
    bool heads_only;   /* whether to read neither relations nor labels, so that the sentences have no tags */
    /* NULL: sentences are tagged. Else a sentence has a label instead of tags: the value of its comment "# LABEL = ...", LABEL being this
     * string; VPPS_NO_WORD without the comment. A labelled sentence whose dependency tree has not exactly one root fails with FORMAT. */
    const char *label;
} vpps_dependencies;
/* Append dependency trees. `dependencies` NULL: a struct of zeros. */
VPPS_API vpps_status vpps_sentences_read_dependencies_file(vpps_sentences *s, const char *path,
                                                           const vpps_dependencies *dependencies);
VPPS_API vpps_status vpps_sentences_read_dependencies_text(vpps_sentences *s, const char *name, const char *text,
                                                           size_t len, const vpps_dependencies *dependencies);

/* Options of plain text: a sentence a line, words separated by any amount of white space. */
typedef struct vpps_lines {
    /* A word ("<eos>") to append to sentences that do not end with it; elsewhere it becomes "<unk>". NULL: none. */
    const char *end_word;
    bool keep_empty; /* whether a line without words is a sentence (of 0 words, or the end word), not skipped */
} vpps_lines;
/* Append plain text to s; `lines` NULL: a vpps_lines of zeros. Fail with IO, FORMAT, STATE, MEMORY; ARGUMENT (end_word empty or with white space). */
VPPS_API vpps_status vpps_sentences_read_lines_file(vpps_sentences *s, const char *path, const vpps_lines *lines);
VPPS_API vpps_status vpps_sentences_read_lines_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                                    const vpps_lines *lines);

/* Options of parallel text, two files of plain text: line i of the source and line i of the target are a sentence and its translation. */
typedef struct vpps_parallel {
    const char *end_word; /* word appended to every target sentence (as in vpps_lines); NULL: none */
    bool skip_empty; /* whether pairs with a line without words are left out; else the first one fails with FORMAT */
} vpps_parallel;
/* Append parallel text. `parallel` NULL: a struct of zeros. Fail as vpps_sentences_read_lines_file does, with FORMAT if one file has more
 * lines (the message gives both counts; lines without words at the end of a file do not count), with STATE unless `source` and `target`
 * have equally many sentences before the call, with ARGUMENT if `source` and `target` are one object. */
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
 * Generated sentences of 3 to 25 words that contain names are data for networks when none are at hand. The language has 227 common
 * words of 2 to 7 small letters, and some 1,700 names of persons, places and organisations, most of them rare. A name's ending and its
 * neighbours on both sides tell which kind it is. Tags are B- and I- followed by PER, LOC or ORG, and O. The language is always the
 * same; `seed` draws sentences. A translation replaces each common word by another, keeps names, and has another order: adjectives
 * after nouns, verbs at the end of their clause. */
typedef struct vpps_language {
    uint64_t seed;
    bool characters; /* whether to split sentences (not translations) into characters, each a word with its own tag */
    bool tags;       /* whether the sentences have tags */
    bool labels;     /* whether sentences get labels: the first name's kind (PER, LOC, ORG), or NONE without a name */
    /* Word appended to every translation or, without translations, to every sentence; may be NULL. */
    const char *end_word;
} vpps_language;
/* Appends n sentences to s, their translations (without tags) to `translation` unless it is NULL, and all words of the language, names
 * among them, to `lexicon` unless it is NULL. Equal options give equal sentences on every machine; the first sentences do not depend on n.
 * `options` NULL: a struct of zeros. Fails with STATE if s or `translation` has sentences of another kind (tagged, labelled, plain), or the
 * two have unequal numbers of sentences; ARGUMENT (an end word that is empty or holds a space or line end; tags with an end word in s; tags
 * and labels; s and `translation` are one object); MEMORY. On failure all three objects are as before. */
VPPS_API vpps_status vpps_sentences_generate(vpps_sentences *s, vpps_sentences *translation, vpps_vocab *lexicon,
                                             const vpps_language *options, uint32_t n);

/* ---------------------------------------------------------------- lattices of characters and words
 *
 * The lattice of a sentence of n characters has nodes 0 to n. Node 0 is the start; node i comes after character i and has that
 * character's tag. An arc from node i - 1 into node i is character i; an arc from an earlier node j into node i is a word of the
 * characters j + 1 to i. */

typedef struct vpps_lattice_arc {
    uint32_t from;     /* the node that the arc leaves; less than the node that it enters */
    uint32_t id;       /* id of the arc's character or word */
    bool is_character; /* whether the arc is one character, from the node just before the one that it enters */
} vpps_lattice_arc;

typedef struct vpps_lattice {
    uint32_t n_nodes;             /* number of nodes, at least 1 */
    const uint32_t *tags;         /* the nodes' tags; the tag of node 0 means nothing */
    const uint32_t *first_arc;    /* n_nodes + 1 entries: arcs[first_arc[i] .. first_arc[i + 1]) enter node i */
    const vpps_lattice_arc *arcs; /* arcs into each node but node 0: first a character's, then any number of words' */
} vpps_lattice;

typedef struct vpps_lattices vpps_lattices;
VPPS_API vpps_status vpps_lattices_create(vpps_lattices **out);
VPPS_API void vpps_lattices_destroy(vpps_lattices *l);
VPPS_API uint32_t vpps_lattices_size(const vpps_lattices *l);
/* Returns lattice i, whose arrays are valid until the lattices grow; all zero if i is out of range. */
VPPS_API vpps_lattice vpps_lattices_get(const vpps_lattices *l, uint32_t i);
/* Returns the line (from 1) of the sentence that lattice i was built from; 0: generated, or i out of range. */
VPPS_API uint32_t vpps_lattices_line(const vpps_lattices *l, uint32_t i);
/* Return 1 + the largest id of a tag, of a character, and of a word: the entries that a table of embeddings needs. 0: no ids. */
VPPS_API uint32_t vpps_lattices_tags(const vpps_lattices *l);
VPPS_API uint32_t vpps_lattices_characters(const vpps_lattices *l);
VPPS_API uint32_t vpps_lattices_words(const vpps_lattices *l);

/* Add the words of a lexicon to a vocabulary. A line's word is its first column, which ends at a tab or, in a line without tab, at white
 * space ("word frequency POS" of jieba's dictionaries, "word<tab>frequency" of THULAC's; the other columns may be missing). Blank lines are
 * skipped. Fail with IO, FORMAT (white space before a word, NUL, a CR without LF), MEMORY; the vocabulary is then as before. */
VPPS_API vpps_status vpps_lexicon_read_file(vpps_vocab *words, const char *path);
VPPS_API vpps_status vpps_lexicon_read_text(vpps_vocab *words, const char *name, const char *text, size_t len);

/* The least and the greatest number of characters of a word in a lattice that vpps_lattices_build makes. */
#define VPPS_LATTICE_WORD_MIN 2
#define VPPS_LATTICE_WORD_MAX 8

/* Appends the lattice of each sentence, whose words are single characters (or other pieces). Consecutive characters that make a word of the
 * lexicon are an arc. Ids of characters and tags are the sentences' (without tags all tags are 0), ids of words the lexicon's. The first
 * arc into a node is the character's; words' arcs follow, from short to long. Fails with MEMORY; the lattices are then as before. */
VPPS_API vpps_status vpps_lattices_build(vpps_lattices *l, const vpps_sentences *characters, const vpps_vocab *lexicon);

/* ---------------------------------------------------------------- constituents: n-ary trees */
typedef struct vpps_constituent {
    uint32_t label;      /* id in the vocabulary of labels: phrase, or part of speech */
    uint32_t n_children; /* number of children; 0: a leaf, which is a part of speech with its word */
    uint32_t n_nodes;    /* number of nodes of the subtree of this node, itself included */
    uint32_t word;       /* the id of a leaf's word in the vocabulary of words; VPPS_NO_WORD at other nodes */
} vpps_constituent;
/* A tree whose nodes are in post-order. Node i's last child is i - 1; the sibling before a child c is c - nodes[c].n_nodes. */
typedef struct vpps_constituent_tree {
    const vpps_constituent *nodes;
    uint32_t n_nodes, n_leaves;
} vpps_constituent_tree;

typedef struct vpps_constituents vpps_constituents;
/* What is left out of labels and trees that are read. A function tag is a suffix of capital letters and digits after '-' or '=': NP-SBJ-1
 * is cut to NP, but -LRB-, very-good and S|<VP-.> have no function tags. A null element is a leaf with the label -NONE- whose word is 0
 * or begins with '*'. A constituent or a tree that holds nothing but null elements is left out with them. */
typedef enum vpps_labels {
    VPPS_LABELS_RAW,  /* nothing is left out of labels and trees */
    VPPS_LABELS_CUT,  /* function tags and null elements are left out */
    VPPS_LABELS_WHOLE /* null elements are left out; labels keep their function tags */
} vpps_labels;
VPPS_API vpps_status vpps_constituents_create(vpps_constituents **out, vpps_labels form);
VPPS_API void vpps_constituents_destroy(vpps_constituents *c);
VPPS_API uint32_t vpps_constituents_size(const vpps_constituents *c);
/* Returns tree i, whose nodes are valid until the constituents grow; all zero if i is out of range. */
VPPS_API vpps_constituent_tree vpps_constituents_tree(const vpps_constituents *c, uint32_t i);
/* Returns the line of the text, from 1, in which tree i begins; 0 if i is out of range. */
VPPS_API uint32_t vpps_constituents_line(const vpps_constituents *c, uint32_t i);
VPPS_API const vpps_vocab *vpps_constituents_vocab(const vpps_constituents *c);  /* words */
VPPS_API const vpps_vocab *vpps_constituents_labels(const vpps_constituents *c); /* labels of phrases and words */

/* Returns whether the labels look like the Penn Treebank's: NP and VP occur, with function tags or without. */
VPPS_API bool vpps_constituents_look_penn(const vpps_constituents *c);
/* Removes function tags from c's labels (NP-SBJ becomes NP); renumbers labels. Fails with MEMORY, changing nothing. */
VPPS_API vpps_status vpps_constituents_cut(vpps_constituents *c);

/* Append trees in the bracket format of the Penn Treebank:
 *     tree := '(' label tree tree... ')' | '(' label word ')'
 * White space separates labels, words and trees (any amount; none is needed beside a bracket). Labels and words are any bytes but
 * white space, round brackets and NUL. If the outermost bracket has no label, the label is ROOT. Lines and failures are as for
 * vpps_treebank_read_file. */
VPPS_API vpps_status vpps_constituents_read_file(vpps_constituents *c, const char *path);
VPPS_API vpps_status vpps_constituents_read_text(vpps_constituents *c, const char *name, const char *text, size_t len);

typedef enum vpps_branching {
    VPPS_LEFT_BRANCHING, /* (X a b c) becomes (X (X* a b) c) */
    VPPS_RIGHT_BRANCHING /* (X a b c) becomes (X a (X* b c)) */
} vpps_branching;
/* Appends all trees to `tb` as binary trees. A chain of nodes with one child becomes one node, whose label joins the chain's labels from
 * the top by '+' (ROOT+S). Labels of new inner nodes end with '*' (no memory of siblings: Markov order 0). A node's label is the id of its
 * label in `labels`, which grows; training and test data share one such vocabulary. Fails with MEMORY; no object changes then. Trees with
 * more than 1,000 classes cannot be read back from text. */
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
    uint64_t gold, predicted, correct; /* numbers of chunks: in gold tags, in predicted tags, equal in both */
} vpps_f1_counts;
/* Returns whether `tags` look like tags of chunks: at least one is a scheme's letter other than O, with a type (B-PER) or without (B), and
 * tags of no scheme are fewer than twice the tags of a scheme, O included (fewer than half of them, if no tag has a type). */
VPPS_API bool vpps_f1_applies(const vpps_vocab *tags);

/* Creates a counter for the tags that `tags` has now; `tags` must live as long as the counter. Fails with MEMORY. */
VPPS_API vpps_status vpps_f1_create(vpps_f1 **out, const vpps_vocab *tags);
VPPS_API void vpps_f1_destroy(vpps_f1 *f);
/* Counts chunks in n words' right and predicted tags. Fails with ARGUMENT (an id out of range), counting nothing. */
VPPS_API vpps_status vpps_f1_add(vpps_f1 *f, uint32_t n, const uint32_t *gold, const uint32_t *predicted);
VPPS_API uint32_t vpps_f1_types(const vpps_f1 *f);
/* Returns the name of a type of chunks; types are numbered from 0 in order of their first tag. NULL if `type` is out of range. */
VPPS_API const char *vpps_f1_type(const vpps_f1 *f, uint32_t type);
/* Returns the counts of one type of chunks; all zero if `type` is out of range. */
VPPS_API vpps_f1_counts vpps_f1_type_counts(const vpps_f1 *f, uint32_t type);
VPPS_API vpps_f1_counts vpps_f1_all_counts(const vpps_f1 *f);
/* Returns the number of counted tags; *right (may be NULL) is the number of correctly predicted ones. */
VPPS_API uint64_t vpps_f1_tokens(const vpps_f1 *f, uint64_t *right);
/* Return precision, recall and F1, each from 0 to 1; 0 if the divisor is 0. */
VPPS_API double vpps_f1_precision(vpps_f1_counts counts);
VPPS_API double vpps_f1_recall(vpps_f1_counts counts);
VPPS_API double vpps_f1_score(vpps_f1_counts counts);

/* Counts for corpus BLEU (Papineni et al. 2002): n-grams of 1 to 4 words, brevity penalty, one reference a sentence. Words are compared
 * by id, without tokenisation or change of case. Begin with all members zero, then add every sentence. */
typedef struct vpps_bleu {
    /* By length of n-gram: the hypotheses' n-grams that occur in the reference (clipped), and all n-grams of the hypotheses. */
    uint64_t matches[4], possible[4];
    uint64_t hypothesis_words, reference_words;
} vpps_bleu;
/* Counts a hypothesis (translation) and its reference, given as ids of one vocabulary that has all words of the reference (a network's
 * <unk> would match rare words). VPPS_NO_WORD, for words of the hypothesis that the vocabulary lacks, matches nothing. Time grows with the
 * product of the two lengths. Fails with MEMORY and then counts nothing. */
VPPS_API vpps_status vpps_bleu_add(vpps_bleu *b, uint32_t n_hypothesis, const uint32_t *hypothesis,
                                   uint32_t n_reference, const uint32_t *reference);

typedef enum vpps_bleu_smoothing {
    VPPS_BLEU_NONE, /* the score is 0 if one of the four precisions is 0 */
    /* the first length of n-grams without a match counts 1/2, the second 1/4, the third 1/8 (NIST's mteval 13a, sacreBLEU's default) */
    VPPS_BLEU_EXP
} vpps_bleu_smoothing;
/* Returns the BLEU score, 0 to 100. The score is 0 without any match, and if no hypothesis has 4 words. */
VPPS_API double vpps_bleu_score(const vpps_bleu *b, vpps_bleu_smoothing smoothing);
/* Returns how scores are computed, to be shown beside them (Post 2018), e.g. "BLEU|tok:none|case:as-is|refs:1|smooth:none". */
VPPS_API const char *vpps_bleu_signature(vpps_bleu_smoothing smoothing);

#ifdef __cplusplus
}
#endif
#endif

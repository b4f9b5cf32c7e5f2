/* fuzz_sequences.c - reads any bytes as sentences, in a format that the first byte chooses: what is read keeps the header's promises and, written
 * again, reads back the same; a refusal leaves the sentences as they were. */
#include "fuzz.h"
#include "vpps_data.h"

enum { TAGGED, COLUMNS, TABS, LINES, KEPT_LINES, CONLLU, LABELLED, N_FORMATS };

static vpps_status read_as(int format, vpps_sentences *s, const char *text, size_t n) {
    static const vpps_columns tabs = {.tabs = true, .comments = true}, blanks = {.word = 2, .tag = 1},
                              conllu = {.conllu = true};
    static const vpps_lines lines = {.end_word = "</s>"}, kept = {.keep_empty = true};
    switch (format) {
    case TAGGED: return vpps_sentences_read_tagged_text(s, "fuzz", text, n);
    case COLUMNS: return vpps_sentences_read_columns_text(s, "fuzz", text, n, &blanks);
    case TABS: return vpps_sentences_read_columns_text(s, "fuzz", text, n, &tabs);
    case LINES: return vpps_sentences_read_lines_text(s, "fuzz", text, n, &lines);
    case CONLLU: return vpps_sentences_read_columns_text(s, "fuzz", text, n, &conllu);
    case LABELLED: return vpps_sentences_read_labelled_text(s, "fuzz", text, n);
    default: return vpps_sentences_read_lines_text(s, "fuzz", text, n, &kept);
    }
}

/* Writes a sentence in the same format. The end word is not written, since reading adds it again, unless it is the only word: an empty line would be
 * no sentence. */
static void write_sentence(int format, const vpps_sentences *s, uint32_t i, FILE *file) {
    const vpps_sentence sentence = vpps_sentences_get(s, i);
    const char *label = vpps_vocab_word(vpps_sentences_tag_vocab(s), vpps_sentences_label(s, i));
    require((label != NULL) == (format == LABELLED));
    if (label) fprintf(file, "%s\t", label);
    const uint32_t n = format == LINES ? sentence.n_words - 1 : sentence.n_words;
    for (uint32_t k = 0; k < n; k++) {
        const char *word = vpps_vocab_word(vpps_sentences_vocab(s), sentence.words[k]);
        require(word != NULL && *word != '\0');
        if (format == LINES || format == KEPT_LINES || format == LABELLED) {
            require(sentence.tags == NULL);
            fprintf(file, "%s ", word);
            continue;
        }
        const char *tag = vpps_vocab_word(vpps_sentences_tag_vocab(s), sentence.tags[k]);
        require(tag != NULL && *tag != '\0');
        if (format == TAGGED) fprintf(file, "%s|%s ", word, tag);
        if (format == COLUMNS) fprintf(file, "%s %s\n", tag, word);
        if (format == CONLLU) fprintf(file, "%u\t%s\t\t%s\t\t\t\t\t\t\n", k + 1, word, tag);
        if (format == TABS) fprintf(file, "%s\t%s\n", word, tag);
    }
    if (format == LINES && n == 0) fputs("</s>", file);
    fputc('\n', file);
}

static void check_same(const vpps_sentences *a, const vpps_sentences *b) {
    require(vpps_sentences_size(a) == vpps_sentences_size(b));
    require(vpps_sentences_total_words(a) == vpps_sentences_total_words(b));
    require(vpps_vocab_size(vpps_sentences_vocab(a)) == vpps_vocab_size(vpps_sentences_vocab(b)));
    for (uint32_t i = 0; i < vpps_sentences_size(a); i++) {
        const vpps_sentence x = vpps_sentences_get(a, i), y = vpps_sentences_get(b, i);
        require(vpps_sentences_line(a, i) > 0 && vpps_sentences_label(a, i) == vpps_sentences_label(b, i));
        require(x.n_words == y.n_words && (x.tags == NULL) == (y.tags == NULL));
        for (uint32_t k = 0; k < x.n_words; k++)
            require(x.words[k] == y.words[k] && (!x.tags || x.tags[k] == y.tags[k]));
    }
}

/* Returns whether a word begins with a byte order mark of UTF-8 or UTF-16, which would be read as one at the beginning of a line or file. */
static bool begins_as_mark(const vpps_vocab *words) {
    static const char *const marks[] = {"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"};
    for (uint32_t i = 0; i < vpps_vocab_size(words); i++)
        for (size_t k = 0; k < VPPS_COUNT(marks); k++)
            if (strncmp(vpps_vocab_word(words, i), marks[k], strlen(marks[k])) == 0) return true;
    return false;
}

static void check_round_trip(int format, const vpps_sentences *s) {
    char *text = NULL;
    size_t n;
    vpps_sentences *again;
    if (begins_as_mark(vpps_sentences_vocab(s)) || begins_as_mark(vpps_sentences_tag_vocab(s))) return;
    FILE *file = open_memstream(&text, &n);
    require(file != NULL);
    require(vpps_sentences_create(&again) == VPPS_OK);
    for (uint32_t i = 0; i < vpps_sentences_size(s); i++) write_sentence(format, s, i, file);
    require(fclose(file) == 0);
    require(read_as(format, again, text, n) == VPPS_OK);
    check_same(s, again);
    vpps_sentences_destroy(again);
    free(text);
}

/* Checks that the characters of each word, joined, are the word. */
static void check_spellings(const vpps_sentences *s) {
    vpps_spellings *spellings;
    require(vpps_spellings_create(&spellings, vpps_sentences_vocab(s)) == VPPS_OK);
    for (uint32_t w = 0; w < vpps_vocab_size(vpps_sentences_vocab(s)); w++) {
        const char *at = vpps_vocab_word(vpps_sentences_vocab(s), w);
        uint32_t n;
        const uint32_t *ids = vpps_spellings_word(spellings, w, &n);
        for (uint32_t i = 0; i < n; i++) {
            const char *character = vpps_vocab_word(vpps_spellings_vocab(spellings), ids[i]);
            const size_t len = strlen(character);
            require(len >= 1 && len <= 4 && strncmp(at, character, len) == 0);
            at += len;
        }
        require(*at == '\0');
    }
    vpps_spellings_destroy(spellings);
}

/* Cuts the bytes in the middle and reads them as both sides of parallel text. */
static void check_parallel(const char *text, size_t n) {
    static const vpps_parallel skip = {.skip_empty = true, .end_word = "</s>"};
    vpps_sentences *source, *target;
    require(vpps_sentences_create(&source) == VPPS_OK);
    require(vpps_sentences_create(&target) == VPPS_OK);
    vpps_status status = vpps_sentences_read_parallel_texts(source, target, "a", text, n / 2, "b", text + n / 2,
                                                            n - n / 2, text[0] % 2 ? &skip : NULL);
    require(status == VPPS_OK || status == VPPS_FORMAT);
    require(vpps_sentences_size(source) == vpps_sentences_size(target));
    require(status == VPPS_OK || vpps_sentences_size(source) == 0);
    vpps_sentences_destroy(source);
    vpps_sentences_destroy(target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n == 0) return 0;
    const int format = data[0] % (N_FORMATS + 1);
    const char *text = (const char *)data + 1;
    vpps_sentences *s;
    if (format == N_FORMATS) {
        if (n > 1) check_parallel(text, n - 1);
        return 0;
    }
    require(vpps_sentences_create(&s) == VPPS_OK);
    if (read_as(format, s, text, n - 1) == VPPS_OK) {
        check_round_trip(format, s);
        check_spellings(s);
    } else {
        require(vpps_sentences_size(s) == 0 && vpps_sentences_total_words(s) == 0);
        require(vpps_vocab_size(vpps_sentences_vocab(s)) == 0 && vpps_vocab_size(vpps_sentences_tag_vocab(s)) == 0);
        require(strncmp(vpps_error_message(), "fuzz:", 5) == 0);
    }
    vpps_sentences_destroy(s);
    return 0;
}

/* bilstm.h - the layers of an exported program's bidirectional LSTM. Each layer runs from left to right and from right to left over n
 * vectors of WIDTH floats. A step's state and output take NET_OUT floats. */
typedef int join(const float *restrict forward, const float *restrict backward, float *restrict x);

static void run_layers(size_t layers, step *const *forward, step *const *backward, join *joined, size_t n, float *x,
                       float *f, float *b) {
    static const float zeros[NET_OUT] = {0};
    for (size_t l = 0; l < layers; l++) {
        for (size_t k = 0; l && k < n; k++) need(joined(f + k * NET_OUT, b + k * NET_OUT, x + k * WIDTH));
        for (size_t k = 0; k < n; k++)
            need(forward[l](k ? f + (k - 1) * NET_OUT : zeros, x + k * WIDTH, f + k * NET_OUT));
        for (size_t k = n; k-- > 0;)
            need(backward[l](k + 1 < n ? b + (k + 1) * NET_OUT : zeros, x + k * WIDTH, b + k * NET_OUT));
    }
}

#ifdef SPELLED
/* Computes the vector of an unknown word by a bidirectional LSTM over the word's characters. */
static void spell(text word, float *to) {
    static step *const forward[] = {net_spell_forward}, *const backward[] = {net_spell_backward};
    float *x = room(word.len * WIDTH, sizeof *x), *f = room(word.len * NET_OUT, sizeof *f),
          *b = room(word.len * NET_OUT, sizeof *b);
    size_t n = 0;
    for (; word.len; n++) {
        const size_t length = vpps_utf8_length(word.at, word.len), bytes = length ? length : 1;
        need(net_character(known(net_character_number(word.at, bytes)), x + n * WIDTH));
        word.at += bytes;
        word.len -= bytes;
    }
    run_layers(1, forward, backward, NULL, n, x, f, b);
    need(net_spelled_word(f + (n - 1) * NET_OUT, b, to));
    free(x);
    free(f);
    free(b);
}
#endif

static void logits_of(const sentence *s, float *logits) {
    float *x = room(s->n * WIDTH, sizeof *x), *f = room(s->n * NET_OUT, sizeof *f),
          *b = room(s->n * NET_OUT, sizeof *b);
    for (size_t k = 0; k < s->n; k++) {
#ifdef SPELLED
        if (known(s->numbers[k]) == 0) {
            spell(s->words[k], x + k * WIDTH);
            continue;
        }
#endif
        need(net_word(known(s->numbers[k]), x + k * WIDTH));
    }
    run_layers(LAYERS, forward_layers, backward_layers, JOIN, s->n, x, f, b);
#ifdef WHOLE
    need(net_classifier(f + (s->n - 1) * NET_OUT, b, logits));
#else
    for (size_t k = 0; k < s->n; k++) need(net_classifier(f + k * NET_OUT, b + k * NET_OUT, logits + k * CLASSES));
#endif
    free(x);
    free(f);
    free(b);
}

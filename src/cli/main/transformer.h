/* transformer.h - the network of an exported program: runs a transformer's layers over a sentence, and writes CLASSES scores for each word. */
static void logits_of(const sentence *s, float *logits) {
    float *at = room(2 * s->n * NET_OUT, sizeof *at), *next = at + s->n * NET_OUT;
    float *scratch = room(s->n * SCRATCH, sizeof *scratch), position[HIDDEN];
    const float **words = room(s->n, sizeof *words);
    for (size_t k = 0; k < s->n; k++) {
        for (uint32_t i = 0; i < HIDDEN; i++) {
            const double angle = (double)k / pow(10000, (double)(i - i % 2) / HIDDEN);
            position[i] = (float)(i % 2 ? cos(angle) : sin(angle));
        }
        need(net_word(position, known(s->numbers[k]), at + k * NET_OUT));
    }
    for (size_t l = 0; l < LAYERS; l++) {
        for (size_t k = 0; k < s->n; k++) words[k] = at + k * NET_OUT;
        for (size_t k = 0; k < s->n; k++) need(layers[l](words[k], words, s->n, scratch, next + k * NET_OUT));
        memcpy(at, next, s->n * NET_OUT * sizeof *at);
    }
    for (size_t k = 0; k < s->n; k++) need(net_classifier(at + k * NET_OUT, logits + k * CLASSES));
    free(at);
    free(scratch);
    free(words);
}

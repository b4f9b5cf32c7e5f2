/* act.h - the network of an exported program with adaptive computation time: its recurrent cell runs up to TURNS times for each word, while
 * some of the word's halting probability is left. Writes the sentence's class scores to `logits`. */
static void logits_of(const sentence *s, float *logits) {
    static const float zero = 0, two = 2;
    float at[2][NET_OUT] = {{0}}, x[NET_EMBEDDING_PUSHED], word[NET_WORD_PUSHED];
    int now = 0;
    for (size_t k = 0; k < s->n; k++) {
        need(net_embedding(known(s->numbers[k]), x));
        need(net_word(x, word));
        at[now][NET_OUT0] = at[now][NET_OUT3] = 1; /* outputs 0 and 3: what is left of the word's halting probability */
        memcpy(at[now] + NET_OUT1, at[now] + NET_OUT2,
               (NET_OUT2 - NET_OUT1) * sizeof **at); /* state (output 1) = mean state of the preceding word (2) */
        memset(at[now] + NET_OUT2, 0, (NET_OUT2 - NET_OUT1) * sizeof **at);
        for (int turn = 0; turn < TURNS && at[now][NET_OUT0] > 0; turn++, now = !now)
            need(net_turn(at[now], word + (turn ? NET_WORD_PUSH0 : NET_WORD_PUSH1), turn + 1 < TURNS ? &zero : &two,
                          at[!now]));
    }
    need(net_classifier(at[now] + NET_OUT2, logits));
}

/* tagger.c - a trained tagger in a program of its own: its arguments are the words of a sentence.
 *
 *     vpps train bilstm-tagger --save net.ckpt
 *     vpps export --model net.ckpt --c net.c --header net.h
 *     cc -O3 -march=native -o tagger tagger.c net.c -lm
 *     ./tagger the old dog sleeps
 *
 * Two LSTMs of one layer go over the words, and a classifier reads both states of a word.
 */
#include "net.h"

enum { MOST = 64, TAGS = NET_CLASSIFIER_PUSHED };

/* Finds the likeliest tags of n words, by their numbers; an unknown word's is 0. Returns NET_OK, or another status of the network. */
int tag(uint32_t n, const uint32_t *words, uint32_t *tags) {
    float x[MOST][NET_WORD_PUSHED], forward[MOST + 1][NET_OUT] = {{0}}, backward[MOST + 1][NET_OUT] = {{0}},
                                                   scores[TAGS];
    if (n > MOST) return NET_MEMBERS;
    for (uint32_t k = 0; k < n; k++)
        if (net_word(words[k], x[k]) != NET_OK) return NET_INDEX;
    for (uint32_t k = 0; k < n; k++) net_forward(forward[k], x[k], forward[k + 1]);
    for (uint32_t k = n; k-- > 0;) net_backward(backward[k + 1], x[k], backward[k]);
    for (uint32_t k = 0; k < n; k++) {
        net_classifier(forward[k + 1], backward[k], scores);
        tags[k] = 0;
        for (uint32_t i = 1; i < TAGS; i++)
            if (scores[i] > scores[tags[k]]) tags[k] = i;
    }
    return NET_OK;
}

#ifndef __wasm__
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    uint32_t words[MOST], tags[MOST], n = 0;
    for (; n < MOST && (int)n + 1 < argc; n++) {
        words[n] = net_word_number(argv[n + 1], strlen(argv[n + 1]));
        if (words[n] == UINT32_MAX) words[n] = 0;
    }
    if (tag(n, words, tags) != NET_OK) return 1;
    for (uint32_t k = 0; k < n; k++) printf("%s|%s%c", argv[k + 1], net_class_text(tags[k]), k + 1 < n ? ' ' : '\n');
    return 0;
}
#endif

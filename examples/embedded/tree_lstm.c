/* tree_lstm.c - a trained Tree-LSTM in a program of its own: the label of a tree in brackets.
 *
 *     vpps train tree-lstm --save net.ckpt
 *     vpps export --model net.ckpt --c net.c --header net.h
 *     cc -O3 -march=native -o tree_lstm tree_lstm.c net.c -lm
 *     ./tree_lstm '(0 (0 (0 MAX) (0 3)) (0 4))'
 *
 * The recursion below is the network's schedule. It keeps two vectors a level on the stack, and allocates nothing.
 */
#include "net.h"

/* Reads a node from *at on: "(label word)" or "(label node node)". Gives what it scatters and its scores. */
static int read_node(const char **at, float *out, float *scores) {
    float left[NET_OUT], right[NET_OUT];
    const char *word;
    int status;
    while (**at == ' ') ++*at;
    if (*(*at)++ != '(') return -1;
    while (**at && **at != ' ') ++*at; /* the label */
    while (**at == ' ') ++*at;
    if (**at == '(') {
        status = read_node(at, left, scores);
        if (status == NET_OK) status = read_node(at, right, scores);
        if (status == NET_OK) status = net_inner(left, right, out, scores);
    } else {
        for (word = *at; **at && **at != ')' && **at != ' ';) ++*at;
        const uint32_t number = net_word_number(word, (size_t)(*at - word));
        status = net_leaf(number == UINT32_MAX ? 0 : number, out, scores);
    }
    while (**at == ' ') ++*at;
    return status != NET_OK || *(*at)++ != ')' ? -1 : NET_OK;
}

/* The likeliest label of the tree; -1: it cannot be read. */
int label_of(const char *tree) {
    float out[NET_OUT], scores[NET_INNER_PUSHED];
    int best = 0;
    if (read_node(&tree, out, scores) != NET_OK) return -1;
    for (int i = 1; i < NET_INNER_PUSHED; i++) best = scores[i] > scores[best] ? i : best;
    return best;
}

#ifndef __wasm__
#include <stdio.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) printf("%d\n", label_of(argv[i]));
    return 0;
}
#endif

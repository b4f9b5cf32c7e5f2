/* lstm_lm_fixed.c - the LSTM language model on pieces of text that are all equally long: the Fixed-LSTM of Xu et al.,
 * "Cavs: An Efficient Runtime System for Dynamic Neural Networks" (USENIX ATC 2018), section 5, which has 64 steps. The
 * text is one sequence, cut into pieces. Each piece starts from zero, or with --carry from the state at the end of the preceding piece, as
 * in Zaremba, Sutskever and Vinyals (2014), section 4.1. Network and parameters: lstm_lm.c. */
#include "lstm_lm.h"

static const option_row options[] = {
    LSTM_LM_OPTIONS,
    {"steps", "N", "Words of an example", OPTION_U32, offsetof(net_config, steps), 1, 65536, true},
    {"carry", NULL, "Let a piece of text begin with the states that the piece before it has left", OPTION_FLAG,
     offsetof(net_config, carry), 0, 0, false},
    {0},
};

extern const network lstm_lm_fixed;
const network lstm_lm_fixed = {
    .name = "lstm-lm-fixed",
    .summary = "LSTM language model, pieces of equal length",
    .source = "Zaremba, Sutskever and Vinyals 2014, section 3; Xu et al. 2018 (Fixed-LSTM)",
    .options = options,
    .embedding = "embedding",
    .kind = NET_TEXT,
    .defaults = {.embed = 256, .hidden = 256, .layers = 1, .steps = 64},
    .create = lstm_lm_create,
    .add = lstm_lm_add,
    .decode = lstm_lm_decode,
    .destroy = part_destroy,
};

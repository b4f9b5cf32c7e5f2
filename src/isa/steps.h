/* steps.h - each optimizer's step for one weight, by the formulas of vpps_optimizer in vpps.h. Written once for C and CUDA: a device
 * includes it after defining VPPS_INLINE and VPPS_STEP_NUMBERS, a struct with the members that are read here.
 *
 * g is the gradient, scaled by clipping. s0 and s1 are the weight's state, as many as the optimizer's row of VPPS_OPTIMIZER_TABLE says;
 * the others may be NULL. */

#define VPPS_OPTIMIZER_STEP(ID)                                                                                        \
    VPPS_INLINE void step_##ID(const VPPS_STEP_NUMBERS *h, float g, float *w, float *s0, float *s1)

VPPS_OPTIMIZER_STEP(SGD) {
    (void)s0, (void)s1;
    g += h->weight_decay * *w;
    *w -= h->lr * g;
}

VPPS_OPTIMIZER_STEP(MOMENTUM) {
    (void)s1;
    g += h->weight_decay * *w;
    *s0 = h->momentum * *s0 + g;
    *w -= h->lr * *s0;
}

VPPS_OPTIMIZER_STEP(ADAGRAD) {
    (void)s1;
    g += h->weight_decay * *w;
    *s0 += g * g;
    *w -= h->lr * g / (sqrtf(*s0) + h->epsilon);
}

VPPS_INLINE float adam_move(const VPPS_STEP_NUMBERS *h, float g, float *s0, float *s1) {
    *s0 = h->beta1 * *s0 + (1.0f - h->beta1) * g;
    *s1 = h->beta2 * *s1 + (1.0f - h->beta2) * (g * g);
    return *s0 * h->corrections[0] / (sqrtf(*s1 * h->corrections[1]) + h->epsilon);
}

VPPS_OPTIMIZER_STEP(ADAM) {
    g += h->weight_decay * *w;
    *w -= h->lr * adam_move(h, g, s0, s1);
}

VPPS_OPTIMIZER_STEP(ADAMW) {
    const float move = adam_move(h, g, s0, s1);
    *w -= h->lr * (move + h->weight_decay * *w);
}

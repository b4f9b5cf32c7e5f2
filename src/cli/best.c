/* best.c - see best.h. */
#include "cli/best.h"

#include <math.h>

/* The first metric of which there was something to count. */
static bool choose_metric(best_measure *b, const task *kind, const measures *dev) {
    for (uint32_t i = 0; i < MAX_METRICS && kind->metrics[i].name && !b->chosen; i++) {
        if (dev->counted[i]) *b = (best_measure){.chosen = true, .metric = i};
    }
    return b->chosen;
}

bool best_take(best_measure *b, const task *kind, const measures *dev, uint32_t epoch, uint32_t batch, bool trained) {
    if (!dev->known || !choose_metric(b, kind, dev)) return false;
    const double value = dev->value[b->metric];
    const bool better = kind->metrics[b->metric].falls ? value < b->value : value > b->value;
    if (!isfinite(value) || (b->found && !better)) {
        b->since += trained;
        return false;
    }
    *b = (best_measure){true, b->metric, true, value, epoch, batch, 0};
    return true;
}

bool best_is_old(const best_measure *b, uint32_t patience) { return patience && b->since >= patience; }

/* contributions.h - what a batch's vertices contribute to gradients: how much to each output and to each entry of a table, and the
 * lists of where it lies. */
#ifndef VPPS_SCRIPT_CONTRIBUTIONS_H
#define VPPS_SCRIPT_CONTRIBUTIONS_H

#include "script/work.h"

/* How many contributions every output with a gradient gets, and which entries get some. False: out of memory. */
bool vpps_count_contributions(const vpps_batch_work *w, vpps_contributions *out);
void vpps_contributions_free(vpps_contributions *c);

/* Writes where contributions to outputs lie, at list_at of each output, an address in the script, which goes on with each. */
void vpps_write_contributions(const vpps_batch_work *w, const vpps_contributions *all, uint32_t *list_at,
                              uint32_t *words);

/* Lists of all entries, of no slice yet. False: out of memory. */
bool vpps_open_entries(const vpps_contributions *all, vpps_entry_lists *lists);

/* Goes on to a slice: finds the entries that it contributes to, and counts how much to each. Where there is one slice, they are all, in
 * their order: then, who adds an entry's gradient up is who owns it. */
void vpps_touch_entries(const vpps_batch_work *w, const vpps_contributions *all, uint32_t slice,
                        vpps_entry_lists *lists);

/* Writes where the slice's contributions to entries lie. */
void vpps_write_entries(const vpps_batch_work *w, const vpps_contributions *all, uint32_t slice,
                        vpps_entry_lists *lists, uint32_t *words);

#endif

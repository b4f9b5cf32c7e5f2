/* script.c - `vpps script`: the device script of the first training batch, as text. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/commands/open_network.h"
#include "cli/common/failure.h"

static vpps_status script(settings *s, session *x, corpus *c) {
    vpps_node loss;
    VPPS_TRY(open_first_batch(x, s, c, true, &loss));
    VPPS_TRY(vpps_disassemble(x->handle, x->graph, loss, stdout));
    return flush_stdout();
}

int command_script(settings *s) {
    VPPS_CLOSED_BY(corpus_close) corpus c = {0};
    VPPS_CLOSED_BY(session_close) session x = {0};
    return exit_code(script(s, &x, &c));
}

#!/bin/bash
# test_layout.sh - `vpps cell`: where a cell's values lie. Of ED-Batch's static subgraphs (table 2) nothing but broadcasts is left in
# forward, and less is copied than in the order of making.

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

# cells NETWORK: o is the object that tells of its cells at the paper's size.
cells() { exits 0 "$vpps" cell "$1" --hidden 64 --vps 1 --batch 4 --json "${@:2}"; }

# arranged CELL AS_MADE BROADCASTS: memory kernels in forward, in the order of making and as arranged.
arranged() {
    json out "[(f['gathers'] + f['scatters'], a['gathers'] + a['scatters'], a['bytes'], a['broadcasts']) \
for c in o['cells'] if c['name'] == '$1' for f, a in [(c['layout']['as_made']['forward'], c['layout']['arranged']['forward'])]] \
== [($2, 0, 0, $3)]"
}

check "tree-lstm" cells tree-lstm --embed 64
check "TreeLSTM-Internal" arranged "tree-lstm inner" 5 2
check "TreeLSTM-Leaf" arranged "tree-lstm leaf" 3 1
check "backward is no worse" json out "all(b['bytes'] <= m['bytes'] for c in o['cells'] \
for m, b in [(c['layout']['as_made']['backward'], c['layout']['arranged']['backward'])])"
check "bytes are those of what is left" json out "all(c['layout']['gathered_bytes'] == \
c['layout']['arranged']['forward']['bytes'] + c['layout']['arranged']['backward']['bytes'] for c in o['cells'])"
check "places do not overlap" json out "all(a + w <= b for c in o['cells'] for pass_ in (None, 'forward', 'backward') for p in \
[sorted({(v['at'], v['words']) for v in c['kept']['values'] if not v['member'] and v['pass'] == pass_})] for (a, w), (b, _) in zip(p, p[1:]))"
check "tree-gru" cells tree-gru --embed 64
check "TreeGRU-Internal" arranged "tree-gru inner" 5 3
check "TreeGRU-Leaf" arranged "tree-gru leaf" 1 1
check "lstm-lm" cells lstm-lm --embed 64
check "LSTMCell" arranged "lstm" 6 2
check "lattice-gru" cells lattice-gru --embed 64
check "GRUCell" arranged "lattice-gru step" 5 2
check "mv-rnn" cells mv-rnn
check "MVCell" arranged "mv-rnn inner" 2 0
check "as text" shows out "to run alike operations as one, forward: 0 gathers, 0 scatters, 0 bytes a vertex" "$vpps" cell tree-lstm --hidden 64 --vps 1 --batch 4
summary

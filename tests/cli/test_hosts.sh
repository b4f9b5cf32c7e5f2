#!/bin/bash
# test_hosts.sh - training over two hosts, which are network namespaces of this machine with a cable between them (and 2 ms of
# latency, where the kernel can add some): the losses of one process, and one message when the cable is pulled.

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
prefix=vpps$$

# Two hosts, a and b, that know each other by these names.
lay_cable() {
    ip netns add "$prefix-a" && ip netns add "$prefix-b" &&
        ip link add vethA netns "$prefix-a" type veth peer name vethB netns "$prefix-b" &&
        ip -n "$prefix-a" addr add 10.77.0.1/24 dev vethA && ip -n "$prefix-b" addr add 10.77.0.2/24 dev vethB &&
        ip -n "$prefix-a" link set vethA up && ip -n "$prefix-b" link set vethB up &&
        ip -n "$prefix-a" link set lo up && ip -n "$prefix-b" link set lo up || return 1
    for host in a b; do
        mkdir -p "/etc/netns/$prefix-$host" || return 1
        printf '127.0.0.1 localhost\n10.77.0.1 a\n10.77.0.2 b\n' > "/etc/netns/$prefix-$host/hosts"
    done
    unshare --uts true
}
# shellcheck disable=SC2317 # the trap calls it
clean_up() {
    for host in a b; do
        ip netns del "$prefix-$host"
        rm -rf "/etc/netns/$prefix-$host"
    done 2> /dev/null
    rm -rf "$work"
}

if [ "$(id -u)" -ne 0 ] || ! command -v ip > /dev/null; then
    skip "training over two hosts" "only root can make network namespaces, with the command ip" 7
    summary
    exit
fi
trap clean_up EXIT
if ! lay_cable > cable 2>&1; then
    skip "training over two hosts" "no network namespaces here: $(head -n 1 cable)" 7
    summary
    exit
fi
ip netns exec "$prefix-a" tc qdisc add dev vethA root netem delay 2ms 2> /dev/null ||
    skip "latency between the hosts" "this kernel has no netem"

cat > remote << END
#!/bin/bash
# [-OPTION] HOST COMMAND...: what ssh does with another machine.
while [[ \$1 == -* ]]; do shift; done
host=\$1
shift
exec ip netns exec "$prefix-\$host" unshare --uts bash -c "hostname '\$host'; \$*"
END
chmod +x remote

# launch NAME COMMAND...: a process on each host.
launch() {
    local name=$1
    shift
    case $name in
    openmpi)
        timeout --kill-after=5 600 ./remote a mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none \
            --mca plm_rsh_agent "$PWD/remote" --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 \
            --mca oob_tcp_if_include 10.77.0.0/24 --wdir "$PWD" --host a,b -n 2 "$@" < /dev/null
        ;;
    mpich)
        timeout --kill-after=5 600 ./remote a mpirun.mpich -launcher ssh -launcher-exec "$PWD/remote" -hosts a,b -n 2 "$@" \
            < /dev/null
        ;;
    esac
}

small=(tree-lstm --hidden 24 --embed 12 --examples 150 --batch 16 --epochs 1 --vps 1)
same_losses() {
    holds "near(losses('$1'), losses('$2')) and len(losses('$1')) > 5"
}

check "one process trains" exits 0 "$vpps" train "${small[@]}" --quiet --log one.jsonl
for name in openmpi mpich; do
    if ! command -v "mpirun.$name" > /dev/null; then
        skip "$name over two hosts" "it is not installed" 3
        continue
    fi
    check "$name: a process on each host" exits 0 launch $name "$vpps" train "${small[@]}" --quiet --log $name.jsonl
    check "$name: the losses of one process" same_losses $name.jsonl one.jsonl
done

pull_cable() {
    rm -f pulled.ckpt
    launch openmpi "$vpps" train "${small[@]}" --epochs 100000 --eval-every 0 --save-every 5 --save pulled.ckpt \
        --watchdog-ms 2000 > out 2> err &
    local job=$!
    eventually 120 test -s pulled.ckpt || { echo "no checkpoint"; cat err; return 1; }
    ip -n "$prefix-b" link set vethB down
    eventually 25 grep -q '^vpps: ' err
    kill $job 2> /dev/null # the launcher itself waits for the other host's answer
    wait $job 2> /dev/null
    for host in a b; do ip netns pids "$prefix-$host" | xargs -r kill -KILL; done
    grep -qE '^vpps: .*nothing was heard of rank 1 on b for' err || { cat err; return 1; }
}
if command -v mpirun.openmpi > /dev/null; then
    check "a cable that is pulled" pull_cable
    check "and a checkpoint that is whole" exits 0 "$vpps" eval --model pulled.ckpt --split dev
fi
summary

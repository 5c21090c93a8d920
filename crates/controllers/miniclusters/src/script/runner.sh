# SPDX-License-Identifier: Apache-2.0
if [ -n "$op_strict" ]; then set -eEu -o pipefail; fi
op_say() { if [ -z "$op_quiet" ]; then printf '%s\n' "$*"; fi; }
# A step without which no broker can run.
op_need() {
    "$@" && return
    printf 'cannot start the broker: this failed: %s\n' "$*" >&2
    exit 1
}

# The shell is process 1 of its container: it must hand a wish to stop on, or the pod is killed after its grace period.
op_child=''
op_stopping=''
op_stop() {
    op_stopping=1
    if [ -n "$op_child" ]; then kill -TERM "$op_child" 2>/dev/null || true; fi
}
trap op_stop TERM
op_serve() {
    local op_result
    "$@" <&0 &
    op_child=$!
    while true; do
        op_result=0
        wait "$op_child" || op_result=$?
        # A signal ends the wait, not what is waited for.
        kill -0 "$op_child" 2>/dev/null || break
    done
    op_child=''
    return "$op_result"
}
# Tells how long a command took, as GNU time does.
op_timed() {
    local op_what=$1 op_result=0 op_begin op_end
    op_begin=${EPOCHREALTIME:-$SECONDS.000000}
    shift
    "$@" || op_result=$?
    op_end=${EPOCHREALTIME:-$SECONDS.000000}
    op_end=$(((${op_end//[.,]/} - ${op_begin//[.,]/}) / 10000))
    printf 'FLUXTIME %s wall time %d:%02d.%02d\n' "$op_what" \
        $((op_end / 6000)) $((op_end / 100 % 60)) $((op_end % 100)) >&2
    return "$op_result"
}

fluxuser=$(id -un 2>/dev/null || echo flux-operator)
fluxuid=$(id -u)
workdir=$PWD
if [ -n "$op_quiet" ]; then eval "$op_init" >/dev/null; else eval "$op_init"; fi

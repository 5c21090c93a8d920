# SPDX-License-Identifier: Apache-2.0
# All of the sidecar runs in one child, so that this shell can hear a wish to stop and hand it on.
op_stop() {
    trap '' TERM
    # Process 1 of a container may speak to all others; beside other containers it knows only its child.
    if [ $$ -eq 1 ]; then kill -TERM -1; else kill -TERM "$op_child"; fi
    wait
    exit 143
}
op_main() {
    local op_code=0
    eval "$op_init"
    if [ -n "$op_strict" ]; then set -eEu -o pipefail; fi
    op_paths
    eval "$op_service_pre"
    local op_socket=$configroot/run/flux/local
    if [ -n "$op_wait" ]; then
        until [ -S "$op_socket" ] || [ -e "$viewbase/flux-operator-complete.txt" ]; do sleep 0.2; done
    fi
    fluxsocket=local://$op_socket
    if [ -n "$op_script" ]; then
        printf '%s' "$op_script" >"$op_file"
        /bin/bash "$op_file"
        op_code=$?
    fi
    if [ -n "$command" ]; then
        eval "$command"
        op_code=$?
    fi
    eval "$op_post"
    return "$op_code"
}
op_main <&0 &
op_child=$!
trap op_stop TERM
wait "$op_child"

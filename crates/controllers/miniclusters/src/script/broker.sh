# SPDX-License-Identifier: Apache-2.0
# Fluxion is found by its start files; without them, or when asked to, Flux keeps its simple scheduler.
if [ -n "$op_view" ] && [ -z "$op_simple" ] && [ -d "$viewroot/etc/flux/rc1.d" ]; then
    export FLUX_RC_EXTRA=$viewroot/etc/flux
fi
if [ -w "$viewbase" ]; then
    printf '%s' "$op_load_fluxion" >"$viewbase/load-fluxion.sh"
    printf '%s' "$op_flux_view" >"$viewbase/flux-view.sh"
    printf '%s' "$op_flux_connect" >"$viewbase/flux-connect.sh"
fi

cfg=$configroot/etc/flux/config
if [ -n "$op_script" ]; then
    op_need mkdir -p /tmp
    printf '%s' "$op_script" >/tmp/custom-entrypoint.sh
    command='/bin/bash /tmp/custom-entrypoint.sh'
fi

# The broker refuses a certificate that others can read.
curvepath=$configroot/curve/curve.cert
op_keep() { (umask 077 && mkdir -p "${2%/*}" && rm -f "$2" && cat "$1" >"$2"); }
op_need op_keep "$curvesrc" "$curvepath"
hosts=$(cat "$configroot/etc/flux/system/hostlist")
op_encode() { flux R encode --hosts="$hosts" --local >"$configroot/etc/flux/system/R"; }
op_need op_encode
export STATE_DIR=$configroot/var/lib/flux FLUX_OUTPUT_DIR=$op_logs
op_need mkdir -p "$STATE_DIR" "$FLUX_OUTPUT_DIR"

op_host=${HOSTNAME:-$(hostname)}
op_lead=''
if [ "$op_host" = "$mainHost" ]; then op_lead=1; fi
# The lead holds the state of the cluster: it reads an earlier one at start and writes its own when it stops.
if [ -n "$op_lead" ] && [ -n "$op_archive" ]; then
    if [ -e "$op_archive" ]; then brokerOptions+=" $op_restore"; fi
    brokerOptions+=" $op_dump"
fi
if [ -n "$op_quiet" ]; then eval "$op_pre" >/dev/null 2>&1; else eval "$op_pre"; fi

# A socket means that the broker is there. One that was killed left it behind, perhaps in an earlier container.
op_unplug() { rm -f "$configroot/run/flux/local" 2>/dev/null || true; }
op_unplug

op_code=0
if [ -n "$op_lead" ]; then
    if [ "$op_mode" = batch ] && [ -n "$command" ]; then
        printf '%s' "$op_batch" >flux-job.batch || op_need test -e flux-job.batch
    fi
    if [ -n "$op_quiet" ]; then eval "$op_broker_pre" >/dev/null 2>&1; else eval "$op_broker_pre"; fi
    op_say "$op_host leads with user $fluxuser ($fluxuid) in $workdir, Flux from ${fluxpath:-PATH}, software in $software"
    words "$brokerOptions"
    op_start=(flux start)
    if [ -n "$op_wrap" ]; then op_start+=("--wrap=$op_wrap"); fi
    op_start+=(-o --config "$cfg" "${argv[@]}")
    op_broker=(flux broker --config-path "$cfg" "${argv[@]}")
    op_run=(op_serve)
    if [ -n "$op_timing" ]; then
        op_run=(op_timed fluxstart op_serve)
        # The broker runs this part: it needs the function in a text of its own.
        op_start+=(bash -c "$(declare -f op_timed); op_timed fluxsubmit \"\$@\"" timed)
    fi
    words "$op_prefix"
    op_start+=("${argv[@]}")
    case $op_mode in
    batch)
        words "$op_flags"
        op_start+=(sh -c 'flux batch "$@" --flags waitable ./flux-job.batch && flux job wait --all' sh "${argv[@]}")
        ;;
    launcher)
        words "$command"
        op_start+=("${argv[@]}")
        ;;
    *)
        words "$op_submit $op_flags --quiet --watch $command"
        op_start+=("${argv[@]}")
        ;;
    esac
    if [ -z "$command" ]; then op_start=("${op_broker[@]}"); fi
    op_say "${op_start[*]}"
    if [ -n "$op_quiet" ] && [ "$op_mode" = batch ]; then
        "${op_run[@]}" "${op_start[@]}" >/dev/null 2>&1 || op_code=$?
    else
        "${op_run[@]}" "${op_start[@]}" || op_code=$?
    fi
else
    if [ -n "$op_quiet" ]; then eval "$op_worker_pre" >/dev/null 2>&1; else eval "$op_worker_pre"; fi
    words "$brokerOptions"
    op_pause=1
    while [ -z "$op_stopping" ]; do
        op_code=0
        op_serve flux start -o --config "$cfg" "${argv[@]}" || op_code=$?
        op_unplug
        if [ "$op_code" -eq 0 ] || [ -n "$op_complete" ]; then break; fi
        if [ -n "$op_stopping" ]; then break; fi
        op_say "$op_host: the broker ended with code $op_code and is started again in about $op_pause s"
        op_serve sleep "$op_pause.$((RANDOM % 10))" || true
        if [ "$op_pause" -lt 8 ]; then op_pause=$((op_pause * 2)); fi
    done
    # What came of the work is the lead's to say.
    op_code=0
fi
op_unplug

eval "$op_post"
touch "$viewbase/flux-operator-complete.txt" || true
if [ -n "$op_stopping" ]; then exit 143; fi
if [ -n "$op_lead" ]; then
    if [ -w /dev/termination-log ]; then printf '%s\n' "$op_code" >/dev/termination-log; fi
    # These two mean to Kubernetes that the pod was killed, and it would try again.
    case $op_code in 137 | 143) op_code=1 ;; esac
fi
exit "$op_code"

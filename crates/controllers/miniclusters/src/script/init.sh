# SPDX-License-Identifier: Apache-2.0
# Prepares the shared directory of one pod: the configuration of the broker and, if wanted, Flux itself. Every step can
# be repeated, because Kubernetes may run this again in the same pod.
set -eu
configroot=$viewbase/config
op_say() { if [ -z "$op_quiet" ]; then printf '%s\n' "$*"; fi; }

mkdir -p "$configroot/etc/flux/system/cron.d" "$configroot/etc/flux/config" "$configroot/var/lib/flux" \
    "$configroot/run/flux" "$configroot/curve"
printf '%s\n' "$hosts" >"$configroot/etc/flux/system/hostlist"
printf '%s' "$op_config" >"$configroot/etc/flux/config/broker.toml"
op_say "The broker of this pod is set up with:"
op_say "$op_config"

# A copy that was cut off is made anew; a whole one is kept.
if [ ! -e "$viewbase/flux-operator-done.txt" ]; then
    rm -rf "$viewbase/view"
    if [ -n "${op_mounted:-}" ]; then
        # The image that this runs in is mounted in the other containers, at the same places.
        for op_found in /opt/views/._view/*/; do ln -sfn "${op_found%/}" "$viewbase/view"; done
        ln -sfn /opt/software "$viewbase/software"
    else
        mkdir -p "$viewbase/view" "$viewbase/software"
        if [ -n "$op_view" ]; then
            cp -R /opt/views/._view/*/. "$viewbase/view"
            cp -R /opt/software/. "$viewbase/software"
        elif [ -d /opt/view ]; then
            cp -R /opt/view/. "$viewbase/view"
        fi
    fi
    touch "$viewbase/flux-operator-done.txt"
fi

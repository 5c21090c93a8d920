# SPDX-License-Identifier: Apache-2.0
# Where everything is. These names are a contract: blocks of the user read and change them.
viewroot=$viewbase/view
configroot=$viewbase/config
software=$viewbase/software
viewbin=$viewroot/bin
fluxpath=$viewbin/flux
if [ -n "$op_view" ]; then
    export PATH="$PATH:$viewbin"
    if [ "${HOME:-/}" = / ]; then
        export HOME=/home/flux-operator USER=flux-operator
    fi
    # The Python of the view goes after the one of the image.
    if [ -z "$op_python" ]; then
        for op_found in "$viewroot"/lib/python3*; do
            if [ -d "$op_found" ]; then op_python=$op_found/site-packages; fi
        done
    fi
    export PYTHONPATH="${PYTHONPATH:-}${op_python:+:$op_python}"
else
    fluxpath=$(command -v flux || true)
fi

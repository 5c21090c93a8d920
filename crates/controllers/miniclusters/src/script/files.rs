// SPDX-License-Identifier: Apache-2.0
//! Files that people use when they open a shell in a pod.

use super::quote::quote;
use crate::cluster::Cluster;

/// Puts Fluxion in the place of the simple scheduler.
pub const LOAD_FLUXION: &str = "#!/bin/bash\nflux module remove -f sched-simple\nflux module load \
                                sched-fluxion-resource\nflux module load sched-fluxion-qmanager\n";

/// To be sourced: brings Flux into the environment of a fresh shell.
pub fn flux_view(cluster: &Cluster<'_>) -> String {
    let base = quote(&cluster.view.mount_path);
    let python = match cluster.view.python_path.as_str() {
        "" => "for op_found in \"$op_base\"/view/lib/python3*; do\n    export \
               PYTHONPATH=\"${PYTHONPATH:-}:$op_found/site-packages\"\ndone\n"
            .to_owned(),
        path => format!("export PYTHONPATH=\"${{PYTHONPATH:-}}\":{}\n", quote(path)),
    };
    let paths = format!(
        "export PATH=\"$PATH:$op_base/view/bin\"\n{python}\
         export LD_LIBRARY_PATH=\"${{LD_LIBRARY_PATH:-}}:$op_base/view/lib\"\n"
    );
    let paths = if cluster.view.disable { String::new() } else { paths };
    let socket = "export fluxsocket=\"local://$op_base/config/run/flux/local\"\n";
    let own = cluster.flux.environment.iter().map(|(name, value)| format!("export {name}={}\n", quote(value)));
    format!("#!/bin/bash\nop_base={base}\n{paths}{socket}{}", own.collect::<String>())
}

/// Opens a shell that talks to the broker of the pod.
pub fn flux_connect(cluster: &Cluster<'_>) -> String {
    let view = quote(&format!("{}/flux-view.sh", cluster.view.mount_path));
    format!("#!/bin/bash\n# shellcheck disable=SC1090,SC1091\n. {view}\nflux proxy \"$fluxsocket\" bash\n")
}

// SPDX-License-Identifier: Apache-2.0
//! User data for clouds that run a script once instead.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The machine runs it with a shell. What is meant for cloud-init is handed over to it.
pub fn as_script(name: &str, user_data: &str) -> String {
    if user_data.starts_with("#!") {
        return user_data.to_owned();
    }
    let seed = "/var/lib/cloud/seed/nocloud";
    let data = STANDARD.encode(user_data);
    format!(
        "#!/bin/bash\nset -eu\numask 077\nmkdir -p {seed}\necho 'instance-id: {name}' >{seed}/meta-data\n\
         base64 -d >{seed}/user-data <<'END'\n{data}\nEND\n\
         cloud-init clean\ncloud-init init --local\ncloud-init init\n\
         cloud-init modules --mode=config\ncloud-init modules --mode=final\n"
    )
}

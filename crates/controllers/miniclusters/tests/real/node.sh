# SPDX-License-Identifier: Apache-2.0
# Process 1 of a node made of namespaces: it starts containerd and the kubelet, and everything ends with it. Arguments:
# a folder for all that is written, the unpacked packages, the kubelet, the address of the node, its name.
set -eu
folder=$1 root=$2 kubelet=$3 address=$4 name=$5
socket=$folder/containerd.sock
export PATH="$root/usr/bin:$root/usr/sbin:$PATH"

# The kubelet changes settings of the whole machine. Here it writes into copies.
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys \
    kernel/keys/root_maxbytes; do
    copy=$folder/${setting##*/}
    cat "/proc/sys/$setting" >"$copy"
    mount --bind "$copy" "/proc/sys/$setting"
done
# Places that cannot be set: those of the machine stay clean.
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib

ip link set lo up
until ip link show node0 >/dev/null 2>&1; do sleep 0.05; done
ip addr add "$address/30" dev node0
ip link set node0 up

containerd --config "$folder/containerd.toml" >"$folder/containerd.log" 2>&1 &
until ctr -a "$socket" version >/dev/null 2>&1; do sleep 0.1; done
ctr -a "$socket" -n k8s.io images import --no-unpack "$folder/image.tar"
"$kubelet" --config="$folder/kubelet.json" --kubeconfig="$folder/kubeconfig" --root-dir="$folder/kubelet" \
    --cert-dir="$folder/certificates" --hostname-override="$name" --node-ip="$address" >"$folder/kubelet.log" 2>&1 &
wait

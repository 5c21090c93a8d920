# SPDX-License-Identifier: Apache-2.0
"""What users of the original's Python SDK do, with the SDK as it is published: make, list, watch, read and delete a
MiniCluster. Prints one line for each step."""

import sys
from fluxoperator import models
from fluxoperator.client import FluxMiniCluster
from kubernetes import client, config

config.load_kube_config()
GROUP = ("flux-framework.org", "v1alpha2", "default", "miniclusters")
script = {"simulator.bivouac.dev/run": "5s", "simulator.bivouac.dev/logs": "hello from the SDK"}

minicluster = models.MiniCluster(
    kind="MiniCluster",
    api_version="flux-framework.org/v1alpha2",
    metadata=client.V1ObjectMeta(name="sdk", namespace="default"),
    spec=models.MiniClusterSpec(
        size=2,
        tasks=2,
        logging=models.LoggingSpec(quiet=True),
        pod=models.PodSpec(annotations=script),
        containers=[models.MiniClusterContainer(image="ubuntu:noble", command="hostname", run_flux=True)],
    ),
)
objects = client.CustomObjectsApi()
made = objects.create_namespaced_custom_object(*GROUP, minicluster)
print("made", made["metadata"]["name"], made["spec"]["size"], made["spec"]["containers"][0]["runFlux"])
found = objects.list_namespaced_custom_object(*GROUP)["items"]
print("listed", [one["metadata"]["name"] for one in found])

cluster = FluxMiniCluster()
cluster.load(made)
print("pods", len(cluster.pods), cluster.broker_pod.startswith("sdk-0-"))
print("nodes", len(cluster.get_nodes().items) > 0)
cluster.stream_output(sys.argv[1], stdout=False)
print("wrote", open(sys.argv[1]).read().strip())
cluster.delete()
print("left", len(objects.list_namespaced_custom_object(*GROUP)["items"]))

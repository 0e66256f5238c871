"""Checks the Kubernetes examples and writes what each of their pods runs.

    kubernetes_pods.py EXAMPLES OUT

For each pod OUT/JOB/INDEX/command (a word a line) and environment (NAME=VALUE a line, as the
operators document them; addresses are loopback's). Pod templates are validated against Kubernetes'
published schema. The operators' own kinds are not part of it: their fields are checked here.
"""

import pathlib
import sys

import kubernetes_validate
import yaml

SCHEMA = "1.29"
NODES = 2  # of the TrainJob, two processes each, so that both examples have four ranks


def fail(text):
    sys.exit(f"kubernetes_pods.py: {text}")


def only(found, allowed, where):
    extra = sorted(set(found) - set(allowed))
    if extra:
        fail(f"{where} has unknown fields {extra}")


def load(path, api, kind):
    job = yaml.safe_load(path.read_text())
    if (job["apiVersion"], job["kind"]) != (api, kind):
        fail(f"{path.name} is {job['apiVersion']} {job['kind']}, not {api} {kind}")
    only(job, {"apiVersion", "kind", "metadata", "spec"}, path.name)
    return job


def check_pod(spec, name):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    kubernetes_validate.validate(pod, SCHEMA, strict=True)


def write(folder, command, environment):
    folder.mkdir(parents=True)
    (folder / "command").write_text("".join(f"{word}\n" for word in command))
    (folder / "environment").write_text("".join(f"{k}={v}\n" for k, v in environment.items()))


def pytorch_job(path, out):
    job = load(path, "kubeflow.org/v1", "PyTorchJob")
    only(job["spec"], {"runPolicy", "pytorchReplicaSpecs", "nprocPerNode"}, path.name)
    replicas = job["spec"]["pytorchReplicaSpecs"]
    only(replicas, {"Master", "Worker"}, path.name)
    if replicas["Master"]["replicas"] != 1:
        fail(f"{path.name} must have one master")
    pods = []
    for kind in ("Master", "Worker"):
        only(replicas[kind], {"replicas", "restartPolicy", "template"}, f"{path.name} {kind}")
        if replicas[kind]["restartPolicy"] not in ("Always", "OnFailure", "Never", "ExitCode"):
            fail(f"{path.name}: restartPolicy {replicas[kind]['restartPolicy']}")
        spec = replicas[kind]["template"]["spec"]
        check_pod(spec, "pod")
        container = next(c for c in spec["containers"] if c["name"] == "pytorch")
        pods += [container["command"] + container["args"]] * replicas[kind]["replicas"]
    for index, command in enumerate(pods):
        environment = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "@PORT@", "RANK": index}
        environment |= {"WORLD_SIZE": len(pods), "PYTHONUNBUFFERED": 1}
        write(out / str(index), command, environment)


def train_job(path, out):
    job = load(path, "trainer.kubeflow.org/v1alpha1", "TrainJob")
    only(job["spec"], {"runtimeRef", "trainer"}, path.name)
    trainer = job["spec"]["trainer"]
    fields = {"image", "command", "args", "env", "numNodes", "numProcPerNode", "resourcesPerNode"}
    only(trainer, fields, f"{path.name} trainer")
    container = {"name": "node", "image": trainer["image"], "command": trainer["command"]}
    container |= {"args": trainer["args"], "resources": trainer["resourcesPerNode"]}
    check_pod({"containers": [container]}, "pod")
    if not isinstance(trainer["numNodes"], int) or trainer["numNodes"] < 1:
        fail(f"{path.name}: numNodes {trainer['numNodes']}")
    for index in range(NODES):
        environment = {"PET_NNODES": NODES, "PET_NPROC_PER_NODE": 2, "PET_NODE_RANK": index}
        environment |= {"PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": "@PORT@"}
        write(out / str(index), trainer["command"] + trainer["args"], environment)


def main():
    examples, out = (pathlib.Path(word) for word in sys.argv[1:])
    pytorch_job(examples / "kubernetes-pytorchjob.yaml", out / "pytorchjob")
    train_job(examples / "kubernetes-trainjob.yaml", out / "trainjob")


main()

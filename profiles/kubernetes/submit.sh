#!/bin/sh
# Makes a job of Kubernetes for a job of Snakemake, and prints its name.
#   submit.sh RULE THREADS MEGABYTES MINUTES GPUS SCRIPT
set -eu

# Yours: the image (docs/container.md), and the claim of a volume that all nodes can write to, with
# the folder where it is mounted. Snakemake's own pod has all three alike.
image=${CONVS2S_IMAGE:-convs2s}
claim=${CONVS2S_CLAIM:-convs2s}
volume=${CONVS2S_VOLUME:-/work}

kubectl create -o 'jsonpath={.metadata.name}{"\n"}' -f - <<END
apiVersion: batch/v1
kind: Job
metadata:
  generateName: $(echo "$1" | tr _ - | cut -c 1-50)-
  labels: {app: convs2s}
spec:
  backoffLimit: 0 # Snakemake itself tries again
  ttlSecondsAfterFinished: 86400
  template:
    metadata:
      labels: {app: convs2s}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 120 # for a training to save its state
      activeDeadlineSeconds: $(($4 * 60)) # from its start on a node
      containers:
        - name: job
          image: "$image"
          workingDir: "$PWD"
          command: [bash, "$(realpath "$6")"]
          # The first process of a container gets no signal: all others do, and it waits for them.
          lifecycle: {preStop: {exec: {command: [bash, -c, kill -TERM -1; sleep 110]}}}
          resources:
            requests: {cpu: $2, memory: ${3}M}
            limits: {memory: ${3}M, nvidia.com/gpu: $5}
          volumeMounts:
            - {name: work, mountPath: "$volume"}
            - {name: shared-memory, mountPath: /dev/shm} # of NCCL's workers; else it has 64 MB
      volumes:
        - name: shared-memory
          emptyDir: {medium: Memory} # counts as memory of the job
        - name: work
          persistentVolumeClaim: {claimName: "$claim"}
END

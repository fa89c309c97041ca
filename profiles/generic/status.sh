#!/bin/sh
# Prints running, success or failed for the job whose number is given: here by Slurm's squeue.
# A job that squeue has forgotten (after MinJobAge) counts as failed: ask at least that often. Where
# squeue has no answer at all, the job is taken to run: it would be submitted a second time otherwise.
if ! state=$(squeue --noheader --states=all --format=%T --jobs="${1%%;*}" 2>&1); then
    case $state in
        *"Invalid job id"*) echo failed ;;
        *) echo running ;;
    esac
    exit
fi
case $state in
    COMPLETED) echo success ;;
    "" | FAILED | CANCELLED* | TIMEOUT | OUT_OF_MEMORY | NODE_FAIL | BOOT_FAIL | DEADLINE | REVOKED | LAUNCH_FAILED)
        echo failed ;;
    *) echo running ;; # also one that signals, stages files out, is held or requeued
esac

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
    PENDING | CONFIGURING | RUNNING | COMPLETING | SUSPENDED | REQUEUED | PREEMPTED) echo running ;;
    *) echo failed ;;
esac

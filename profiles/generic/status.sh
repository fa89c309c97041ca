#!/bin/sh
# Prints running, success or failed for the job whose number is given: here by Slurm's squeue.
# A job that squeue has forgotten (after MinJobAge) counts as failed: ask at least that often.
state=$(squeue --noheader --states=all --format=%T --jobs="${1%%;*}" 2>/dev/null)
case $state in
    COMPLETED) echo success ;;
    PENDING | CONFIGURING | RUNNING | COMPLETING | SUSPENDED | REQUEUED | PREEMPTED) echo running ;;
    *) echo failed ;;
esac

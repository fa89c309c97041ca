#!/bin/sh
# Prints running, success or failed for the job whose name is given.
if state=$(kubectl get job "$1" -o 'jsonpath={.status.conditions[?(@.status=="True")].type}' 2>&1); then
    case $state in
        *Complete*) echo success ;;
        *Failed*) echo failed ;;
        *) echo running ;;
    esac
else
    case $state in
        *NotFound*) echo failed ;; # somebody has deleted it
        *) echo running ;;         # the cluster does not answer: it is asked again
    esac
fi

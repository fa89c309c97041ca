"""Files from elsewhere: fetched, checked, unpacked."""

"""The sub-commands of `tidecast`, one file each."""

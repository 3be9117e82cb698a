"""The commands of `tidecast`, one file each."""

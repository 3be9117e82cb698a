"""What codecs come to on the records of topics."""

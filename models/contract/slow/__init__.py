"""What is noticed or decided over many intervals: drift of the job, codecs, checkpoint intervals, configurations."""

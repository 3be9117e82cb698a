"""What is computed on files of series, apart from any running job: tables, pages, benchmarks."""

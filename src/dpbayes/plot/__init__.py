"""Every picture once, for reports, the studio, notebooks and files."""

"""A release as a page that people can read, as pictures, and as a folder of files."""

"""The studio: plan, release and explain in a browser on the same machine. It writes what the commands write."""

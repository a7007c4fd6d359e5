"""The background process: owns the store, lends runners to requests, speaks HTTP in every dialect."""

"""Tasks in processes of their own."""

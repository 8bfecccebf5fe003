"""Sites whose servers come and go: courses, their laws, and training runs that hold on or move."""

"""Models on their way in and out: runs as objects, files of other libraries, models that others trained."""

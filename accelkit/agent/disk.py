"""The door to the files that are the record of claims: every effect on them, nothing else."""


class Disk:
    """The host's file system."""

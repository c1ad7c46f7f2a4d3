"""What vendors read on a host, kept in a folder, and read from it again.

Not here: which vendors are asked, and what is hidden before it is given away.

A capture has ``capture.json``, a tree ``files/`` of what was read, ``tape/LIBRARY.jsonl`` with each
call of a C library, ``modules/NAME.jsonl`` with each call of a Python binding, ``commands.jsonl``
with each program that was run, and ``kernel.log`` with what the kernel's log has of the vendors.
"""

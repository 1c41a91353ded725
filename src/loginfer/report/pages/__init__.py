"""The pages of a report, one file each: `pages(context)` yields pages and files of data."""

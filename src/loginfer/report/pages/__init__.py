"""The pages of a report, a module each: `pages(material)` yields pages and files of data."""

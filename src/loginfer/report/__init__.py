"""From numbers to what people look at: tables, plots, pages."""

"""What functions take and give: parameters, arguments, tables in the place of streams, columns."""

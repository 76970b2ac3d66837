/** Rows under headings, each column as wide as its widest cell. @param right columns of numbers. */
export const tableLines = (
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  { right = [] }: { right?: readonly string[] } = {},
): string[] => {
  const all = [headings, ...rows]
  const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column]!.length)))
  const padded = (cell: string, column: number) =>
    right.includes(headings[column]!) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)
  return all.map((row) => row.map(padded).join('  ').trimEnd())
}

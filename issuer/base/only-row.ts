/** The row of a statement that always answers one. Anything else is a fault of ours. */
export const onlyRow = <Row>(rows: readonly Row[]): Row => {
  const [row] = rows
  if (row === undefined) throw new Error('A statement that always answers a row answered none.')
  return row
}

/**
 * Arrays among the values of a statement, as the text that PostgreSQL reads. The driver puts one together element by
 * element, by regular expressions. JSON has the same form but for its brackets, and but for what it escapes, which is
 * left to the driver.
 */
export const withArrayText = (values: readonly unknown[]): unknown[] =>
  values.map((value) => (Array.isArray(value) ? (arrayText(value) ?? value) : value))

const arrayText = (elements: readonly unknown[]): string | undefined => {
  if (!elements.every(isPlain)) return undefined
  const json = JSON.stringify(elements)
  return json.includes('\\') ? undefined : `{${json.slice(1, -1)}}`
}

const isPlain = (element: unknown): boolean =>
  element == null ||
  typeof element === 'string' ||
  typeof element === 'boolean' ||
  (typeof element === 'number' && Number.isFinite(element))

/** Header fields as Node and undici give and take them: name, value, name, value, … */
export type FieldList = readonly string[]

export const eachField = (fields: FieldList, visit: (name: string, value: string) => void): void => {
  for (let index = 0; index + 1 < fields.length; index += 2) visit(fields[index]!, fields[index + 1]!)
}

export const filterFields = (fields: FieldList, keep: (name: string, value: string) => boolean): string[] => {
  const kept: string[] = []
  eachField(fields, (name, value) => {
    if (keep(name, value)) kept.push(name, value)
  })
  return kept
}

export const lowerCaseNames = (fields: FieldList): string[] =>
  fields.map((text, index) => (index % 2 === 0 ? text.toLowerCase() : text))

/** The values of a field, in order. `name` as it stands in the list. */
export const valuesOf = (fields: FieldList, name: string): string[] => {
  const values: string[] = []
  eachField(fields, (one, value) => {
    if (one === name) values.push(value)
  })
  return values
}

/** Appends the fields of a record. */
export const pushFields = (fields: string[], record: Readonly<Record<string, string>>): void => {
  for (const name in record) {
    const value = record[name]
    if (value !== undefined) fields.push(name, value)
  }
}

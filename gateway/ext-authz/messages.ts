/** The answers of `envoy.service.auth.v3`, in the names that proto-loader gives their members. */
export interface CheckResponse {
  status: { code: number; message?: string }
  deniedResponse?: { status: { code: number }; headers: HeaderValueOption[]; body: string }
  okResponse?: OkResponse
  dynamicMetadata: { fields: Record<string, Value> }
}

export interface OkResponse {
  headers: HeaderValueOption[]
  headersToRemove: string[]
  queryParametersToRemove: string[]
}

interface HeaderValueOption {
  header: { key: string; value: string }
  appendAction: number
}

/** Of `google.protobuf.Struct`. */
export type Value =
  | { nullValue: 0 }
  | { boolValue: boolean }
  | { numberValue: number }
  | { stringValue: string }
  | { listValue: { values: Value[] } }
  | { structValue: { fields: Record<string, Value> } }

/** Of what JSON can say. */
export const structValueOf = (json: unknown): Value => {
  if (typeof json === 'string') return { stringValue: json }
  if (typeof json === 'number') return { numberValue: json }
  if (typeof json === 'boolean') return { boolValue: json }
  if (Array.isArray(json)) return { listValue: { values: json.map(structValueOf) } }
  if (typeof json !== 'object' || json === null) return { nullValue: 0 }
  return {
    structValue: {
      fields: Object.fromEntries(Object.entries(json).map(([name, value]) => [name, structValueOf(value)])),
    },
  }
}

/**
 * Replaces what is there. Without `append`, which is old: releases of Envoy that know only that replace as well, and
 * those that know both refuse to be told twice.
 */
const overwriteIfExistsOrAdd = 2

export const headerToSet = (key: string, value: string): HeaderValueOption => ({
  header: { key, value: utf8(value) },
  appendAction: overwriteIfExistsOrAdd,
})

/** Fields are read and written as Node has them, a character for each byte; the text of a message is UTF-8. */
const utf8 = (value: string): string =>
  /[\x80-\xff]/.test(value) ? Buffer.from(value, 'latin1').toString('utf8') : value

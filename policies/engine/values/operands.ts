import { isNumber, type RegoNumber, type RegoObject, toInteger, type Value } from './value.ts'

/**
 * A built-in function cannot answer: its operand has the wrong type or form. The expression is then undefined in the
 * policy, as in OPA. The message is for the authors of rules.
 */
export class BuiltinError extends Error {
  override readonly name = 'BuiltinError'
}

export const refuse = (message: string): never => {
  throw new BuiltinError(message)
}

/** What `read` gives; refuses with the message where it throws. */
export const orRefuse = <Result>(read: () => Result, message: string): Result => {
  try {
    return read()
  } catch {
    return refuse(message)
  }
}

/** What `read` gives; `undefined` where it refuses. */
export const unlessRefused = <Result>(read: () => Result): Result | undefined => {
  try {
    return read()
  } catch (error) {
    if (error instanceof BuiltinError) return undefined
    throw error
  }
}

// --- checks of operands

/** Any value. The module passes all operands of a function. */
export const asValue = (value: Value | undefined): Value => (value === undefined ? refuse('operand is missing') : value)

export const asString = (value: Value | undefined): string =>
  typeof value === 'string' ? value : refuse('operand must be a string')

export const asBoolean = (value: Value | undefined): boolean =>
  typeof value === 'boolean' ? value : refuse('operand must be a boolean')

export const asNumber = (value: Value | undefined): RegoNumber =>
  value !== undefined && isNumber(value) ? value : refuse('operand must be a number')

export const asInteger = (value: Value | undefined): bigint =>
  toInteger(asNumber(value)) ?? refuse('operand must be an integer')

/** An integer that fits a 64-bit one. */
export const asInt64 = (value: Value | undefined): bigint => {
  const integer = asInteger(value)
  return BigInt.asIntN(64, integer) === integer ? integer : refuse('operand is out of range')
}

/** An integer within ±2^31: counts, indexes. */
export const asCount = (value: Value | undefined): number => {
  const integer = asInteger(value)
  return integer >= -0x80000000n && integer < 0x80000000n ? Number(integer) : refuse('operand is out of range')
}

export const asArray = (value: Value | undefined): Value[] =>
  Array.isArray(value) ? value : refuse('operand must be an array')

export const asObject = (value: Value | undefined): RegoObject =>
  value instanceof Map ? value : refuse('operand must be an object')

/** The items of an array or a set. */
export const asItems = (value: Value | undefined): Value[] => {
  if (Array.isArray(value)) return value
  return value instanceof Set ? [...value] : refuse('operand must be an array or a set')
}

export const asStrings = (value: Value | undefined): string[] => asItems(value).map(asString)

// --- results

/** An object from a record; members that are `undefined` are left out. */
export const objectOf = (members: Record<string, Value | undefined>): RegoObject =>
  new Map(Object.entries(members).filter((member): member is [string, Value] => member[1] !== undefined))

/** Bytes → text as JSON would write them: what is not UTF-8 becomes U+FFFD. */
export const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')

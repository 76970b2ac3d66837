import { parseValue } from '../../../../policies/engine/values/text.ts'
import type { RegoObject, RegoSet, Value } from '../../../../policies/engine/values/value.ts'

/** A call of a built-in function that costs as much as a caller can make it with operands of 64 kB. */
export interface HostileCall {
  builtin: string
  /** What is hostile about the operands. */
  name: string
  operands: () => Value[]
}

/** Bytes of all operands of a call together. */
export const most = 65_000

export const call = (builtin: string, name: string, operands: () => Value[]): HostileCall => ({
  builtin,
  name,
  operands,
})

/** As many copies as fit. */
export const repeated = (text: string, length = most): string => text.repeat(Math.floor(length / text.length))

/** `make(0)`, `make(1)`, …, as many as fit with a character between them. */
export const manyTexts = (make: (index: number) => string, length = most): string[] => {
  const texts: string[] = []
  for (let left = length; left > 0; ) {
    const text = make(texts.length)
    left -= text.length + 3
    if (left > 0) texts.push(text)
  }
  return texts
}

export const json = (value: unknown): Value => parseValue(JSON.stringify(value))

export const object = (entries: readonly (readonly [Value, Value])[]): RegoObject => new Map(entries)

export const set = (items: Iterable<Value>): RegoSet => new Set(items)

/** `[[[…]]]` and the like. */
export const nested = (depth: number, around: (inner: Value) => Value, innermost: Value = 1): Value => {
  let value = innermost
  for (let level = 0; level < depth; level++) value = around(value)
  return value
}

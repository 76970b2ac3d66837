import { describe, expect, test } from 'vitest'
import { readJson } from '../../platform/json.ts'

const read = (text: string) => readJson(text, { maxDepth: 3, exactNumbers: true })

test('what every parser reads the same is read as JSON.parse does', () => {
  for (const text of ['null', ' {"a":[{"b":"\\u00e9"}],"":0} ', '"😀"', '{"__proto__":{"a":1}}']) {
    expect(read(text)).toEqual({ value: JSON.parse(text) })
  }
  expect(Object.keys((read('{"__proto__":1}') as { value: object }).value)).toEqual(['__proto__'])
})

test.each([
  ['{', 'is not JSON'],
  ['', 'is not JSON'],
  ['\ufeff{}', 'is not JSON'],
  ['{"a":1,"a":1}', 'has a member name twice in one object'],
  ['{"a":1,"\\u0061":1}', 'has a member name twice in one object'],
  ['[{"\\"":1,"b":{},"\\u0022":1}]', 'has a member name twice in one object'],
  ['"\\ud800"', 'has an unpaired surrogate'],
  ['{"\\udc00":1}', 'has an unpaired surrogate'],
  ['[[[[]]]]', 'is nested too deeply'],
  ['{"a":{"b":{"c":{}}}}', 'is nested too deeply'],
  ['[1e400]', 'has a number that a double does not hold exactly'],
])('%s %s', (text, fault) => {
  expect(read(text)).toEqual({ fault })
})

test('names that differ in case, or are written in other code points, are one where that is asked for', () => {
  const ignoringCase = (text: string) => readJson(text, { maxDepth: 3, ignoreCase: true })
  for (const [name, other] of [
    ['amount', 'Amount'],
    ['straße', 'STRASSE'],
    ['\u017fcope', 'scope'],
    ['\u212aey', 'key'],
    ['\u00e9', 'e\u0301'],
  ]) {
    const text = JSON.stringify({ [name!]: 1, [other!]: 2 })
    expect([text, ignoringCase(text)]).toEqual([text, { fault: 'has a member name twice in one object' }])
    expect(read(text)).toHaveProperty('value')
  }
  expect(ignoringCase('{"a":{"A":1},"b":[{"A":1},{"a":1}]}')).toHaveProperty('value')
})

describe('numbers', () => {
  const isTaken = (literal: string) => 'value' in read(`{"a":[${literal}]}`)

  test('are taken as every language writes doubles', () => {
    const bytes = new DataView(new ArrayBuffer(8))
    for (let index = 0; index < 5_000; index++) {
      bytes.setUint32(0, Math.floor(Math.random() * 2 ** 32))
      bytes.setUint32(4, Math.floor(Math.random() * 2 ** 32))
      const double = bytes.getFloat64(0)
      if (!Number.isFinite(double)) continue
      const exponential = double.toExponential()
      for (const literal of [String(double), exponential, exponential.toUpperCase()]) {
        expect([literal, isTaken(literal)]).toEqual([literal, true])
      }
    }
  })

  test('are taken exactly when the integer is one that a double holds', () => {
    for (let index = 0; index < 5_000; index++) {
      const integer = BigInt(Math.floor(Math.random() * 2 ** 53)) * 4n + BigInt(index % 4)
      // What is written back is the shortest that reads the same, which is another integer for large ones.
      const same = BigInt(String(Number(integer)).replace(/e.*/, '')) === integer
      expect([String(integer), isTaken(String(integer))]).toEqual([String(integer), same])
    }
  })

  test.each(['0', '-0', '0.0', '0e99', '1.50', '100', '1E2', '10e-1', '123456789012345', '0.1', '2e+3'])('%s', (text) =>
    expect(isTaken(text)).toBe(true),
  )
  test.each(['1e309', '-1e309', '1e-400', '0.10000000000000001', '123456789012345678', '3.141592653589793238'])(
    'not %s',
    (text) => expect(isTaken(text)).toBe(false),
  )
  test('of a quarter of a million digits are read at once', () => {
    const zeros = '0'.repeat(250_000)
    for (const literal of [`0.1${zeros}1`, `0.${zeros}1`, `1${zeros}.1`]) expect(isTaken(literal)).toBe(false)
    expect(isTaken(`0.1${zeros}`)).toBe(true)
  })

  test('of any kind where nobody asks', () => {
    expect(readJson('[1e400,9007199254740993]', { maxDepth: 1 })).toEqual({ value: [Infinity, 9007199254740992] })
  })
})

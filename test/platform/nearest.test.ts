import { expect, test } from 'vitest'
import { didYouMean, nearest } from '../../platform/nearest.ts'

test.each([
  ['prot', ['port', 'host'], 'port'],
  ['conectTimeout', ['connectTimeout', 'headersTimeout', 'idleTimeout'], 'connectTimeout'],
  ['Scopes', ['scopes', 'hosts'], 'scopes'],
  ['algoritms', ['algorithms'], 'algorithms'],
  ['colour', ['cors', 'context'], undefined],
  ['x', ['y', 'port'], undefined],
  ['pat', ['path', 'part'], undefined],
  ['', ['a'], undefined],
])('%s is probably one of %j: %s', (wrong, names, meant) => {
  expect(nearest(wrong, names)).toBe(meant)
})

test('what is no text means nothing', () => {
  expect([didYouMean(3, ['3']), didYouMean('prot', ['port'])]).toEqual(['', '; did you mean port?'])
})

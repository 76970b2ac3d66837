import { expect, test } from 'vitest'
import { isTracestate, parseTraceparent } from '../../../gateway/request/traceparent.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const parentId = '00f067aa0ba902b7'
const good = `00-${traceId}-${parentId}-01`

test.each([
  [good, true],
  [`00-${traceId}-${parentId}-00`, false],
  // Unknown flags are let be; the lowest bit is the one that is known.
  [`00-${traceId}-${parentId}-ff`, true],
  [`00-${traceId}-${parentId}-02`, false],
  // Later versions.
  [`01-${traceId}-${parentId}-01`, true],
  [`cc-${traceId}-${parentId}-01-what-the-future-will-be-like`, true],
  [`cc-${traceId}-${parentId}-01-`, true],
])('%s is read', (text, sampled) => {
  expect(parseTraceparent(text)).toEqual({ traceId, parentId, sampled })
})

test.each([
  '',
  'x',
  `ff-${traceId}-${parentId}-01`,
  `00-${traceId}-${parentId}-01-`,
  `00-${traceId}-${parentId}-01-more`,
  `01-${traceId}-${parentId}-01.more`,
  `00-${'0'.repeat(32)}-${parentId}-01`,
  `00-${traceId}-${'0'.repeat(16)}-01`,
  good.toUpperCase(),
  `00-${traceId.replace('b', 'B')}-${parentId}-01`,
  `00-${traceId.replace('b', 'g')}-${parentId}-01`,
  `00-${traceId.slice(1)}-${parentId}-01`,
  `00-${traceId}0-${parentId}-01`,
  `00-${traceId}-${parentId.slice(1)}-01`,
  `00-${traceId}-${parentId}-1`,
  `00-${traceId}-${parentId}`,
  `0-${traceId}-${parentId}-01`,
  `.0-${traceId}-${parentId}-01`,
  `00_${traceId}_${parentId}_01`,
  ` ${good}`,
  `${good} `,
  `${good}\n`,
  `${good},${good}`,
  `${good}, ${good}`,
  `01-${traceId}-${parentId}-01-${'x'.repeat(300)}`,
])('%j is no traceparent', (text) => {
  expect(parseTraceparent(text)).toBeUndefined()
})

const members = (count: number) => Array.from({ length: count }, (_, index) => `k${index}=v`).join(',')

test.each([
  'rojo=00f067aa0ba902b7',
  'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
  'fw529a3039@dt=FfffFFFf ,\tcongo=a b',
  '0tenant@system=1',
  'a-b_c*d/e=!"#$%&\'()+./:;<>?@[]^`{|}~',
  'a=1,,b=2,',
  members(32),
])('%s is a tracestate', (text) => {
  expect(isTracestate(text)).toBe(true)
})

test.each([
  'rojo',
  'rojo=',
  '=1',
  'Rojo=1',
  'a=1,a=2',
  'a=b=c',
  'a =1',
  'a= ',
  '@a=1',
  'a@1=1',
  'a@b@c=1',
  'a=ä',
  'a=1\u0000',
  `${'a'.repeat(257)}=1`,
  `a@${'b'.repeat(15)}=1`,
  `a=${'b'.repeat(257)}`,
  members(33),
  `${members(30)},long=${'x'.repeat(256)},longer=${'x'.repeat(256)}`,
])('%j is no tracestate', (text) => {
  expect(isTracestate(text)).toBe(false)
})

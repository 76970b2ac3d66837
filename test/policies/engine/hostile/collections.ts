import type { Value } from '../../../../policies/engine/values/value.ts'
import { call, type HostileCall, json, manyTexts, most, nested, object, repeated, set } from './call.ts'

const half = most / 2

const numbers = (count: number): Value[] => Array.from({ length: count }, (_, index) => index)

/** Equal but for the last item, so that every comparison looks at all. */
const nearlyEqual = (index: number, length: number): Value[] => [...numbers(length).map(() => 1), index]

const patch = (operations: unknown[]): Value => json(operations)

/** Every node leads to all of the next layer. */
const layers = (wide: number, deep: number): Value =>
  object(
    Array.from({ length: wide * deep }, (_, node) => [
      String(node),
      Array.from({ length: wide }, (_, index) => String((Math.floor(node / wide) + 1) * wide + index)),
    ]),
  )

/** Each leads to all others. */
const everyWay = (count: number): Value =>
  object(numbers(count).map((node) => [node, numbers(count).filter((other) => other !== node)]))

const networks = (count: number, make: (index: number) => string): string[] =>
  Array.from({ length: count }, (_, index) => make(index))

const scattered = (count: number): string[] => networks(count, (index) => `10.${index >> 8}.${index & 255}.0/24`)

/** Objects, lists, graphs, networks. */
export const collectionCalls: HostileCall[] = [
  call('json.patch', 'copies of copies', () => [
    json({ a: ['x'] }),
    patch(Array.from({ length: 22 }, (_, index) => ({ op: 'copy', from: '', path: `/a${index}` }))),
  ]),
  call('json.patch', 'copies of a long text', () => [
    json([repeated('a', half)]),
    patch(Array.from({ length: 800 }, () => ({ op: 'copy', from: '/0', path: '/-' }))),
  ]),
  call('json.patch', 'moves in a long list', () => [
    json(numbers(half / 7)),
    patch(Array.from({ length: 700 }, () => ({ op: 'move', from: '/0', path: '/-' }))),
  ]),
  call('json.patch', 'additions to a large object', () => [
    json(Object.fromEntries(numbers(half / 11).map((index) => [`a${String(index)}`, 1]))),
    patch(Array.from({ length: 800 }, (_, index) => ({ op: 'add', path: `/b${index}`, value: 1 }))),
  ]),
  call('json.patch', 'keys of numbers that are not there', () => [
    object(numbers(half / 8).map((index) => [index, 1])),
    Array.from({ length: 800 }, () =>
      object([
        ['op', 'add'],
        ['path', [1.5]],
        ['value', 1],
      ]),
    ),
  ]),
  call('json.patch', 'lists in a set', () => [
    set(Array.from({ length: 150 }, (_, index) => nearlyEqual(index, 100))),
    Array.from({ length: 150 }, () =>
      object([
        ['op', 'test'],
        ['path', [nearlyEqual(-1, 100)]],
        ['value', 1],
      ]),
    ),
  ]),
  call('json.patch', 'deep additions', () => [
    nested(2000, (inner) => object([['a', inner]])),
    patch(Array.from({ length: 8 }, () => ({ op: 'add', path: repeated('/a', 4_000), value: 1 }))),
  ]),
  call('json.patch', 'tests', () => [
    json([numbers(half / 7)]),
    patch([...Array.from({ length: 900 }, () => ({ op: 'test', path: '/0', value: 1 }))]),
  ]),
  call('json.patch', 'a long path', () => [json({}), patch([{ op: 'add', path: repeated('/', most), value: 1 }])]),
  call('object.subset', 'runs that nearly match', () => [
    json([...numbers(10_000).map(() => 1)]),
    json([...numbers(10_000).map(() => 1), 2]),
  ]),
  call('object.subset', 'half a run', () => [
    json(numbers(16_000).map(() => 1)),
    json([...numbers(8_000).map(() => 1), 2]),
  ]),
  call('object.subset', 'a set in a list', () => [
    json(numbers(half / 6)),
    set(numbers(half / 6).map((index) => Number(index) + 0.5)),
  ]),
  call('object.subset', 'sets of numbers', () => [
    set(numbers(half / 6)),
    set(numbers(half / 6).map((index) => Number(index) + 0.5)),
  ]),
  call('object.subset', 'sets of lists', () => [
    set(Array.from({ length: 160 }, (_, index) => nearlyEqual(index, 100))),
    set(Array.from({ length: 160 }, (_, index) => nearlyEqual(index + 0.5, 100))),
  ]),
  call('object.subset', 'keys of numbers', () => [
    object(numbers(half / 8).map((index) => [index, 1])),
    object(numbers(half / 8).map((index) => [Number(index) + 0.5, 1])),
  ]),
  call('object.subset', 'deep sets around a long text', () => [
    set([nested(1_200, (inner) => set([inner, 1]), repeated('a', half))]),
    set([nested(1_200, (inner) => set([inner, 2]), 'a')]),
  ]),
  call('json.patch', 'nothing in what is deep around a long text', () => [
    nested(1_500, (inner) => [inner, 1], repeated('a', half)),
    [],
  ]),
  call('object.subset', 'deep objects', () => [
    nested(600, (inner) => object([['a', inner]])),
    nested(600, (inner) => object([['a', inner]])),
  ]),
  call('graph.reachable_paths', 'every way', () => [everyWay(9), set([0])]),
  call('graph.reachable_paths', 'layers of two', () => [layers(2, 30), set(['0'])]),
  call('graph.reachable_paths', 'one long way', () => [
    object(numbers(4_000).map((node) => [node, [Number(node) + 1]])),
    set([0]),
  ]),
  call('graph.reachable_paths', 'many starts on a long way', () => [
    object(numbers(2_000).map((node) => [node, [Number(node) + 1]])),
    set(numbers(2_000)),
  ]),
  call('graph.reachable_paths', 'a long way that branches at its end', () => [
    object([
      ...numbers(1_500).map((node): [Value, Value] => [node, [Number(node) + 1]]),
      [1_500, numbers(8_000).map((node) => -1 - Number(node))],
    ]),
    set([0]),
  ]),
  call('graph.reachable_paths', 'lists for nodes', () => {
    const nodes = Array.from({ length: 25 }, (_, index) => nearlyEqual(index, 100))
    return [object(nodes.map((node) => [node, nodes.slice(0, 10)])), set(nodes)]
  }),
  call('net.cidr_contains_matches', 'many by many', () => [scattered(1_800), scattered(1_800)]),
  call('net.cidr_contains_matches', 'all in all', () => [
    networks(1_800, (index) => `10.0.0.0/${8 + (index % 4)}`),
    networks(1_800, () => '10.0.0.0/24'),
  ]),
  call('net.cidr_contains_matches', 'of IPv6', () => [
    networks(1_000, (index) => `2001:db8:${index.toString(16)}:0:0:0:0:1/64`),
    networks(1_000, (index) => `2001:db8:${index.toString(16)}:0:0:0:0:1/64`),
  ]),
  call('net.cidr_expand', 'IPv4', () => ['10.0.0.0/16']),
  call('net.cidr_expand', 'IPv6', () => ['2001:db8:1:2:3:4:5:0/112']),
  call('net.cidr_expand', 'too many', () => ['::/0']),
  call('net.cidr_is_valid', 'a long text', () => [repeated('1')]),
  call('net.cidr_merge', 'IPv4 side by side', () => [
    networks(4_000, (index) => `10.${index >> 8}.${index & 255}.0/24`),
  ]),
  call('net.cidr_merge', 'IPv6 side by side', () => [
    networks(2_500, (index) => `2001:db8::${(index + 1).toString(16)}/128`),
  ]),
  call('net.cidr_merge', 'IPv6 apart', () => [
    networks(2_500, (index) => `2001:db8::${(index * 2 + 1).toString(16)}/128`),
  ]),
  call('net.cidr_merge', 'IPv6 side by side, ends that fit nothing', () => [
    networks(
      2_000,
      (index) => [`2001:${(index + 1).toString(16)}::1/128`, `2001:${(index + 1).toString(16)}::2/127`][index % 2]!,
    ),
  ]),
  call('yaml.marshal', 'deep lists', () => [nested(1500, (inner) => [inner])]),
  call('yaml.marshal', 'deep objects', () => [
    nested(1500, (inner) => json({ a: 1, b: inner }) && object([['a', inner]])),
  ]),
  call('yaml.marshal', 'texts with a deep indent', () => [
    nested(1000, (inner) => object([['a', inner]]), repeated('x\n', half)),
  ]),
  call('yaml.marshal', 'words with a deep indent', () => [
    nested(1000, (inner) => object([['a', inner]]), repeated('x y ', half)),
  ]),
  call('yaml.marshal', 'keys with long beginnings', () => [
    object(Array.from({ length: 120 }, (_, index) => [`${'1'.repeat(500)}${String(index)}`, 1])),
  ]),
  call('yaml.marshal', 'many keys', () => [
    json(Object.fromEntries(manyTexts((index) => `${index}`).map((key) => [key, 1]))),
  ]),
  call('yaml.marshal', 'a long text in quotes', () => [repeated('\u0001')]),
  call('yaml.marshal', 'many texts', () => [manyTexts(() => '1')]),
  call('yaml.marshal', 'sets in sets', () => [nested(12, (inner) => set([inner, [inner]]))]),
]

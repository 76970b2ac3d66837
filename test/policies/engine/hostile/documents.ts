import { call, type HostileCall, json, manyTexts, most, nested, repeated } from './call.ts'

const half = most / 2

const times = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index))

const doublings = (count: number): string =>
  ['a0: &a0 x', ...times(count, (index) => `a${index + 1}: &a${index + 1} [*a${index}, *a${index}]`)].join('\n')

const yamlTexts: readonly [string, string][] = [
  ['a list in one line', `[${repeated('1,')}]`],
  ['a map in one line', `{${repeated('a: 1,')}}`],
  ['lists in lists', repeated('[')],
  ['lists in lists that end', `${repeated('[', 2_000)}${repeated(']', 2_000)}`],
  ['braces in braces, over and over', repeated('{{a}}')],
  ['dashes', repeated('- ')],
  ['lines of dashes', repeated('-\n')],
  ['lines of keys', repeated('a:\n')],
  ['many keys', manyTexts((index) => `${index}: `).join('\n')],
  ['question marks', repeated('? ')],
  ['quotes', repeated('""\n')],
  ['an open quote', `"${repeated('a\n')}`],
  ['escapes', `"${repeated('\\n')}"`],
  ['comments', repeated('#\n')],
  ['anchors', repeated('&a ')],
  ['many anchors', manyTexts((index) => `- &a${index} 1`).join('\n')],
  ['one anchor, many aliases', `- &a 1\n${repeated('- *a\n')}`],
  ['aliases that double', doublings(30)],
  [
    'maps that are merged',
    `- &a {${manyTexts((index) => `k${index}: 1`, half / 2).join(',')}}\n${repeated('- {<<: *a}\n', half)}`,
  ],
  ['a long text folded', `>\n${repeated('  a\n')}`],
  ['a long plain text', repeated('a\n ')],
  ['tags', repeated('!a ')],
  ['documents', repeated('---\n')],
  ['errors', repeated('}\n')],
  ['tabs', repeated('\t')],
  ['large numbers', manyTexts(() => '- 0x7fffffffffffffff').join('\n')],
  ['a large number', `0x${repeated('f')}`],
]

const schemaCalls: HostileCall[] = [
  call('json.match_schema', 'a schema that asks for itself twice', () => [
    json({}),
    json({ anyOf: [{ $ref: '#' }, { $ref: '#' }] }),
  ]),
  call('json.match_schema', 'levels that ask for the next twice', () => [
    json({}),
    json({
      $ref: '#/definitions/0',
      definitions: Object.fromEntries(
        times(40, (index) => [
          String(index),
          index === 39
            ? false
            : { anyOf: [{ $ref: `#/definitions/${index + 1}` }, { $ref: `#/definitions/${index + 1}` }] },
        ]),
      ),
    }),
  ]),
  call('json.match_schema', 'a deep document, checked twice a level', () => [
    nested(300, (inner) => new Map([['a', inner]]), new Map()),
    json({ allOf: [{ properties: { a: { $ref: '#' } } }, { properties: { a: { $ref: '#' } } }] }),
  ]),
  call('json.match_schema', 'many items, many values', () => [
    json({ a: times(half / 7, (index) => index) }),
    json({ properties: { a: { items: { enum: times(half / 7, (index) => -index - 1) } } } }),
  ]),
  call('json.match_schema', 'many items, many constants', () => [
    json({ a: times(half / 5, () => 1) }),
    json({ properties: { a: { items: { const: repeated('a', half) } } } }),
  ]),
  call('json.match_schema', 'many members, many patterns', () => [
    json(Object.fromEntries(manyTexts((index) => `a${index}`, half).map((key) => [key, 1]))),
    json({ patternProperties: Object.fromEntries(manyTexts((index) => `b${index}$`, half).map((key) => [key, true])) }),
  ]),
  call('json.match_schema', 'a pattern and a long text', () => [
    json({ a: repeated('a', half) }),
    json({ properties: { a: { pattern: '(?:.*a){100}b' } } }),
  ]),
  call('json.match_schema', 'a pattern and many texts', () => [
    json({ a: manyTexts(() => 'aaaaaaaaaaaa', half) }),
    json({ properties: { a: { items: { pattern: '(?:.*a){100}b' } } } }),
  ]),
  call('json.match_schema', 'many patterns', () => [
    json({}),
    json({ anyOf: manyTexts((index) => `a{1000}b${index}`, half).map((pattern) => ({ pattern })) }),
  ]),
  call('json.match_schema', 'large items that differ late', () => [
    json({ a: times(80, (index) => [...times(300, () => 1), index]) }),
    json({ properties: { a: { uniqueItems: true } } }),
  ]),
  call('json.match_schema', 'the same items over and over', () => [
    json({ a: times(half / 3, () => 1) }),
    json({ properties: { a: { uniqueItems: true } } }),
  ]),
  call('json.match_schema', 'mismatches below a long name', () => [
    json({ [repeated('n', half / 2)]: times(half / 4, () => 1) }),
    json({ additionalProperties: { items: { type: 'string' } } }),
  ]),
  call('json.match_schema', 'mismatches that rise through many levels', () => [
    json({ a: times(6_000, () => 1) }),
    json(
      times(400, () => 0).reduce((inner: unknown) => ({ allOf: [inner] }), {
        properties: { a: { items: { type: 'string' } } },
      } as unknown),
    ),
  ]),
  call('json.match_schema', 'large exponents', () => [
    `{"a": [${manyTexts((index) => `1.5e9${100 + (index % 800)}`, half).join(',')}]}`,
    json({ properties: { a: { items: { minimum: 1, maximum: 2, multipleOf: 1, enum: [1.5, 2.5, 3.5] } } } }),
  ]),
  call('json.match_schema', 'what is required', () => [json({}), json({ required: manyTexts((index) => `${index}`) })]),
  call('json.match_schema', 'long references', () => [
    json({ a: times(half / 3, () => 1) }),
    json({
      properties: { a: { items: { $ref: `#${repeated('/d', 800)}` } } },
      ...(nested(400, (inner) => json({ d: 0 }) && new Map([['d', inner]])) && deepDefinitions(400)),
    }),
  ]),
  call('json.match_schema', 'formats', () => [
    json({ a: manyTexts(() => '2006-01-02T15:04:05.000000000Z', half) }),
    json({ properties: { a: { items: { format: 'date-time' } } } }),
  ]),
  ...[
    'hostname',
    'email',
    'uri-template',
    'json-pointer',
    'regex',
    'uri',
    'uuid',
    'date-time',
    'relative-json-pointer',
  ].map((format) =>
    call('json.match_schema', `the format ${format}`, () => [
      json({
        a:
          format === 'json-pointer'
            ? `${repeated('/~0')}~`
            : format === 'regex'
              ? repeated('(a{9})', half)
              : `${repeated('a')}!`,
      }),
      json({ properties: { a: { format } } }),
    ]),
  ),
  call('json.match_schema', 'a large schema', () => [
    json({}),
    json({
      properties: Object.fromEntries(
        manyTexts((index) => `a${index}": {"type": "string"}`).map((_, index) => [`a${index}`, { type: 'string' }]),
      ),
    }),
  ]),
  call('json.verify_schema', 'many patterns', () => [
    json({ anyOf: manyTexts((index) => `${index}(a{900}b){1}`).map((pattern) => ({ pattern })) }),
  ]),
  call('json.verify_schema', 'deep', () => [nested(1500, (inner) => new Map([['not', inner]]), new Map())]),
  call('json.verify_schema', 'many references', () => [
    json({ anyOf: times(2_500, () => ({ $ref: '#/definitions/a' })), definitions: { a: {} } }),
  ]),
  call('json.verify_schema', 'no schema', () => [`{"a": ${repeated('[', 3_000)}}`]),
]

function deepDefinitions(depth: number): object {
  return times(depth, () => 0).reduce((inner: object) => ({ d: inner }), {} as object)
}

const schemaOfA = 'type Query { a: Query b: Int c(x: I): Int } input I { i: I j: [I] }'

function pairsOfFields(depth: number): string {
  return depth === 0 ? '{b}' : `{a${pairsOfFields(depth - 1)}a${pairsOfFields(depth - 1)}}`
}

const queries: readonly [string, string, string?][] = [
  ['the same field', `{${repeated('b ')}}`],
  ['many names for a field', `{${manyTexts((index) => `a${index}:b `).join('')}}`],
  ['fields in fields', `{${repeated('a{', 6_000)}b${repeated('}', 3_000)}}`],
  ['pairs of fields in each other', pairsOfFields(11)],
  [
    'fragments that meet',
    `{${times(300, (index) => `...f${index} `).join('')}}${times(300, (index) => `fragment f${index} on Query{${times(20, (name) => `n${name}:b `).join('')}}`).join('')}`,
  ],
  ['the same fields in each other', `{${repeated('a{b}')}}`],
  ['the same fields, deeper', `{${repeated('a{a{a{b}}}')}}`],
  [
    'an introspection that doubles',
    `{__schema{...f0}}${times(25, (index) => `fragment f${index} on __Schema{...f${index + 1} ...f${index + 1}}`).join('')}fragment f25 on __Schema{queryType{name}}`,
  ],
  [
    'fragments that use the next twice',
    `{...f0}${times(25, (index) => `fragment f${index} on Query{a{...f${index + 1}}a{...f${index + 1}}}`).join('')}fragment f25 on Query{b}`,
  ],
  [
    'fragments that use all that follow',
    `{...f0}${times(100, (index) => `fragment f${index} on Query{${times(99 - index, (next) => `...f${index + 1 + next} `).join('')}b}`).join('')}`,
  ],
  [
    'many fragments',
    `{${times(1_000, (index) => `...f${index} `).join('')}}${times(1_000, (index) => `fragment f${index} on Query{a{b}}`).join('')}`,
  ],
  ['fragments in a ring', times(1_500, (index) => `fragment f${index} on Query{...f${(index + 1) % 1_500}}`).join('')],
  ['many operations', times(3_000, (index) => `query q${index}{b}`).join('')],
  ['many variables', `query(${times(3_000, (index) => `$v${index}:Int `).join('')}){b}`],
  [
    'variables and fragments',
    `${times(300, (index) => `query q${index}($v:Int){...f0}`).join('')}${times(300, (index) => `fragment f${index} on Query{...f${index + 1} b}`).join('')}fragment f300 on Query{b}`,
  ],
  ['values in values', `{c(x:${repeated('{i:', 9_000)}null${repeated('}', 3_000)})}`],
  ['lists of values', `{c(x:{j:[${repeated('{},')}]})}`],
  ['directives', `{b ${repeated('@skip(if:true)')}}`],
  ['a long text', `{c(x:"${repeated('\\n')}")}`],
  ['comments', `{b ${repeated('#\n')}}`],
  ['aliases of fields with arguments', `{${times(3_000, () => 'c(x:{i:{}}) ').join('')}}`],
]

const schemas: readonly [string, string][] = [
  ['many types', times(2_500, (index) => `type T${index}{a:Int}`).join('')],
  ['many fields', `type Query{${manyTexts((index) => `a${index}:Int `).join('')}}`],
  ['many extensions', `type Query{a:Int}${times(2_000, (index) => `extend type Query{b${index}:Int}`).join('')}`],
  [
    'interfaces of interfaces',
    times(
      300,
      (index) =>
        `interface I${index} implements ${times(Math.min(index, 12), (before) => `I${index - 1 - before}`).join('&') || 'J'}{a:Int}`,
    ).join(''),
  ],
  [
    'a type of many interfaces',
    `${times(700, (index) => `interface I${index}{a:Int}`).join('')}type Query implements ${times(700, (index) => `I${index}`).join('&')}{a:Int}`,
  ],
  [
    'fields of an interface',
    `interface I{${times(1_500, (index) => `a${index}:Int `).join('')}}type Query implements I{${times(1_500, (index) => `a${1_499 - index}:Int `).join('')}}`,
  ],
  [
    'one interface again and again',
    `interface I{${times(700, (index) => `a${index}:Int `).join('')}}type Query implements ${repeated('I&', half)}I{${times(700, (index) => `a${699 - index}:Int `).join('')}}`,
  ],
  [
    'a large union',
    `union U=${times(4_000, (index) => `T${index}`).join('|')} ${times(2_000, (index) => `type T${index}{a:Int}`).join('')}`,
  ],
  ['a large enum', `enum E{${manyTexts((index) => `A${index} `).join('')}}`],
  [
    'arguments of directives',
    `directive @d(${times(1_500, (index) => `a${index}:Int `).join('')}) on OBJECT type Query @d(${times(1_500, (index) => `a${1_499 - index}:1 `).join('')}){a:Int}`,
  ],
  ['directives', `type Query ${repeated('@deprecated ')}{a:Int}`],
  ['descriptions', repeated('"a"type A{b:Int}')],
]

export const documentCalls: HostileCall[] = [
  ...yamlTexts.flatMap(([name, text]) => [
    call('yaml.unmarshal', name, () => [text]),
    ...(text.length > 60_000 ? [] : [call('yaml.is_valid', name, () => [text])]),
  ]),
  call('yaml.is_valid', 'dashes', () => [repeated('- ')]),
  ...schemaCalls,
  ...queries.flatMap(([name, query]) => [
    call('graphql.is_valid', name, () => [query, schemaOfA]),
    call('graphql.parse_query', name, () => [query]),
  ]),
  call('graphql.parse_and_verify', 'many names for a field', () => [queries[1]![1], schemaOfA]),
  call('graphql.parse', 'many names for a field', () => [queries[1]![1], schemaOfA]),
  ...schemas.flatMap(([name, schema]) => [
    call('graphql.schema_is_valid', name, () => [schema]),
    call('graphql.parse_schema', name, () => [schema]),
    call('graphql.is_valid', `a schema of ${name}`, () => ['{a}', schema]),
  ]),
  call('graphql.is_valid', 'many fields of many arguments', () => [
    `{${times(7_000, (index) => `a${index}:a `).join('')}}`.slice(0, half).replace(/ [^ ]*$/, '}'),
    `type Query{a(${manyTexts((index) => `a${index}:Int `, half).join('')}):Int}`,
  ]),
]

import { call, type HostileCall, manyTexts, most, repeated } from './call.ts'

const half = most / 2

/** Regular expressions, globs, templates. */
const searches: readonly [string, string, string][] = [
  ['each search reads to the end', 'a*b|a', repeated('a', half)],
  ['each search reads to the end of a short text', 'a*b|a', repeated('a', 16_000)],
  ['a literal at the end', 'x.*zz|a', `${repeated('a', half)}zz`],
  ['many alternatives', repeated('a|', half).slice(0, -1), repeated('b', half)],
  ['all places at once', '(?:a?){300}b', `${repeated('a', half)}cb`],
  ['everything, often', '(?:.*a){100}b', `${repeated('a', half)}cb`],
  ['a long count', '[a-z]{1000}1', `${repeated('a', half)}-1`],
  ['many counts', repeated('a{1000}', half), repeated('a', half)],
  ['counts of groups', repeated('(?:a{30}){30}', half), repeated('a', half)],
  ['many groups', repeated('(a)', half), repeated('a', half)],
  ['a group of groups', `${'('.repeat(900)}a${')'.repeat(900)}`, repeated('a', half)],
  ['groups that repeat', '(a|b|ab)*c', `${repeated('ab', half)}-c`],
  ['a captured search', '(a*)(b)?', repeated('a', half)],
  ['any letter', repeated('\\pL', half), repeated('é', half)],
  ['any case', `(?i)${repeated('[a-\u{1e900}]', half)}`, repeated('a', half)],
  ['any case, counted', '(?i)(?:[^x]{900})', repeated('ä', half)],
  [
    'classes of many characters',
    `[${manyTexts((index) => String.fromCodePoint(0x4e00 + index * 2), half / 1.5).join('')}]+x`,
    repeated('一', half / 2),
  ],
  ['words', '\\b\\w+\\b', repeated('ab ', half)],
  ['a plain text', 'ab', repeated('a', half)],
  ['empty matches', '', repeated('a')],
  ['letters', '.', repeated('a')],
]

export const regexCalls: HostileCall[] = [
  ...searches.flatMap(([name, pattern, text]) => [
    call('regex.find_n', name, () => [pattern, text, -1]),
    call('regex.replace', name, () => [text, pattern, 'x$1']),
    call('regex.split', name, () => [pattern, text]),
  ]),
  call('regex.replace', 'a result that explodes', () => [repeated('a', half), 'a', repeated('b', half)]),
  call('regex.replace', 'a group that explodes', () => [repeated('a', half), '(a*)', repeated('$1', half)]),
  call('regex.template_match', 'many braces', () => [repeated('{a}', half), repeated('a', half), '{', '}']),
  call('regex.template_match', 'many different braces', () => [
    manyTexts((index) => `{a${index}}`, half).join(''),
    repeated('a', half),
    '{',
    '}',
  ]),
  call('regex.template_match', 'everything, often', () => ['{(?:.*a){100}b}', repeated('a', half), '{', '}']),
  call('regex.template_match', 'a long template', () => [repeated('a', half), repeated('a', half), '{', '}']),
  call('regex.globs_match', 'stars', () => [repeated('a*', 600), repeated('a*', 600)]),
  call('regex.globs_match', 'short stars', () => [`${repeated('a*', 600)}b`, `${repeated('a*', 600)}c`]),
  call('regex.globs_match', 'sets', () => [`[${repeated('a', half)}]b`, `[${repeated('c', half)}]b`]),
  call('regex.globs_match', 'stars of sets', () => [
    `${repeated('[abcdefgh]*', 3_000)}b`,
    `${repeated('[abcdefgh]*', 3_000)}c`,
  ]),
  call('regex.globs_match', 'plain', () => [repeated('a', half), repeated('a', half)]),
  call('strings.render_template', 'loops in loops', () => [
    '{{range .a}}{{range $.a}}{{range $.a}}{{end}}{{end}}{{end}}',
    new Map([['a', manyTexts((index) => String(index), half)]]),
  ]),
  call('strings.render_template', 'long loops that end at once', () => [
    '{{range .a}}{{range $.a}}{{break}}{{end}}{{end}}',
    new Map([['a', manyTexts((index) => String(index))]]),
  ]),
  call('strings.render_template', 'a count', () => [
    '{{range 100000}}{{range 100000}}{{break}}{{end}}{{end}}',
    new Map(),
  ]),
  call('strings.render_template', 'values that nobody sees', () => [
    '{{range .a}}{{$x := print $}}{{end}}',
    new Map([['a', manyTexts((index) => String(index))]]),
  ]),
  call('strings.render_template', 'bytes of a long text', () => [
    '{{range .a}}{{$x := index $.b 1}}{{end}}',
    new Map([
      ['a', manyTexts(() => '', half)],
      ['b', repeated('a', half)],
    ] as [string, string | string[]][]),
  ]),
  call('strings.render_template', 'a text that doubles', () => [
    `{{$x := "${'x'.repeat(64)}"}}${repeated('{{$x = print $x $x}}', 2_000)}`,
    new Map(),
  ]),
  call('strings.render_template', 'a width', () => ['{{printf "%9999999d" 1}}', new Map()]),
  call('strings.render_template', 'widths that nobody sees', () => [
    repeated('{{$x := printf "%999999d" 1}}', 6_000),
    new Map(),
  ]),
  call('strings.render_template', 'spaces', () => [`${repeated(' ')}x{{- 1}}`, new Map()]),
  call('strings.render_template', 'spaces, often', () => [repeated(`${' '.repeat(3_000)}x{{- 1}}`), new Map()]),
  call('strings.render_template', 'many variables', () => [
    manyTexts((index) => `{{$a${index.toString(36)} := 1}}`, half).join('') + repeated('{{$}}', half),
    new Map(),
  ]),
  call('strings.render_template', 'many actions', () => [repeated('{{1}}'), new Map()]),
  call('strings.render_template', 'many operands', () => [`{{print ${repeated('1 ')}}}`, new Map()]),
  call('strings.render_template', 'parentheses', () => [
    `{{${repeated('(', half)}1${repeated(')', half)}}}`,
    new Map(),
  ]),
  call('strings.render_template', 'quotes', () => [`{{"${repeated('\\n')}"}}`, new Map()]),
  call('strings.render_template', 'templates of templates', () => [
    `${Array.from({ length: 40 }, (_, index) => `{{define "${index}"}}{{template "${index + 1}"}}{{template "${index + 1}"}}{{end}}`).join('')}{{template "0"}}`,
    new Map(),
  ]),
]

import { parseValue } from '../../../../policies/engine/values/text.ts'
import type { Value } from '../../../../policies/engine/values/value.ts'
import { call, type HostileCall, json, manyTexts, most, nested, repeated } from './call.ts'

const half = most / 2

const mixed = (length: number): string => repeated('aB3 é<', length)

/** Texts, encodings, numbers, times. */
export const textCalls: HostileCall[] = [
  ...['crypto.md5', 'crypto.sha1', 'crypto.sha256', 'hex.encode', 'base64url.encode_no_pad', 'glob.quote_meta'].map(
    (name) => call(name, 'a long text', () => [repeated('*')]),
  ),
  ...['md5', 'sha1', 'sha256', 'sha512'].map((name) =>
    call(`crypto.hmac.${name}`, 'a long text and key', () => [repeated('a', half), repeated('b', half)]),
  ),
  call('crypto.hmac.equal', 'long texts', () => [repeated('a', half), repeated('a', half)]),
  call('hex.decode', 'a long text', () => [repeated('f0')]),
  call('urlquery.encode', 'quotes', () => [repeated("'")]),
  call('urlquery.decode', 'escapes apart', () => [repeated('%41a')]),
  call('urlquery.decode_object', 'many names', () => [manyTexts((index) => `${index.toString(36)}=`).join('&')]),
  call('urlquery.decode_object', 'one name', () => [repeated('a&')]),
  call('urlquery.decode_object', 'escapes', () => [repeated('%41&')]),
  call('urlquery.decode_object', 'equals signs', () => [repeated('=')]),
  call('urlquery.encode_object', 'many values', () => [json({ [repeated("'", half)]: manyTexts(() => '', half) })]),
  call('uri.parse', 'a long path', () => [`http://a/${repeated("%2f'")}`]),
  call('uri.parse', 'a long host', () => [`http://${repeated('a')}`]),
  call('uri.parse', 'a long scheme', () => [repeated('a')]),
  call('uri.parse', 'a long user', () => [`http://${repeated('%41a')}@a`]),
  call('uri.is_valid', 'a long query', () => [`http://a/?${repeated('%41')}`]),
  call('json.marshal_with_options', 'a long indent', () => [
    json(manyTexts(() => '', half)),
    json({ indent: repeated(' ', half) }),
  ]),
  call('json.marshal_with_options', 'deep', () => [
    nested(1500, (inner) => [inner, 1]),
    json({ indent: repeated(' ', half) }),
  ]),
  call('json.marshal_with_options', 'deep around a long text', () => [deepAroundText(), json({})]),
  call('json.marshal_with_options', 'a long prefix', () => [
    json(manyTexts(() => '', half)),
    json({ prefix: repeated(' ', half) }),
  ]),
  call('strings.any_prefix_match', 'many by many', () => [
    manyTexts((index) => index.toString(36), half),
    manyTexts((index) => `-${index.toString(36)}`, half),
  ]),
  call('strings.any_prefix_match', 'nearly equal', () => [
    manyTexts(() => `${'a'.repeat(200)}b`, half),
    manyTexts(() => `${'a'.repeat(200)}c`, half),
  ]),
  call('strings.any_suffix_match', 'many by many', () => [
    manyTexts((index) => index.toString(36), half),
    manyTexts((index) => `-${index.toString(36)}`, half),
  ]),
  ...['indexof_n', 'strings.count'].flatMap((name) => [
    call(name, 'a letter', () => [repeated('a'), 'a']),
    call(name, 'nearly everywhere', () => [repeated('a', half), `b${repeated('a', half / 2)}`]),
    call(name, 'nearly everywhere, at the end', () => [repeated('a', half), `${repeated('a', half / 2)}b`]),
    call(name, 'nearly everywhere, in the middle', () => [
      repeated('a', half),
      `${repeated('a', half / 4)}b${repeated('a', half / 4)}`,
    ]),
    call(name, 'overlapping', () => [repeated('a', half), repeated('a', half / 2)]),
  ]),
  call('strings.split_n', 'letters', () => [repeated('a'), '', 1_000_000]),
  call('strings.split_n', 'nearly everywhere', () => [repeated('a', half), `b${repeated('a', half / 2)}`, 5]),
  call('sprintf', 'a precision', () => ['%.9999999f', [1.5]]),
  call('sprintf', 'a width', () => ['%9999999d', [1]]),
  call('sprintf', 'many widths', () => [repeated('%[1]999999d'), [1]]),
  call('sprintf', 'a width in the operands', () => [repeated('%[1]*[1]d'), [1_000_000]]),
  call('sprintf', 'a long text again and again', () => [repeated('%[1]s', half), [mixed(half)]]),
  call('sprintf', 'a long text in hexadecimal', () => [repeated('%[1]x', half), [mixed(half)]]),
  call('sprintf', 'a long text in quotes', () => [repeated('%[1]q', half), [mixed(half)]]),
  call('sprintf', 'a long text cut', () => [repeated('%[1].1s', half), [mixed(half)]]),
  call('sprintf', 'a large number again and again', () => [
    repeated('%[1]d', half),
    [BigInt(`1${repeated('0', half)}`)],
  ]),
  call('sprintf', 'small doubles', () => [repeated('%f'), json(Array.from({ length: 9_000 }, () => 5e-324))]),
  call('sprintf', 'one small double', () => [repeated('%[1]f'), [5e-324]]),
  call('sprintf', 'one large double', () => [repeated('%[1]f'), [1.7976931348623157e308]]),
  call('sprintf', 'indexes that do not end', () => [repeated('%[')]),
  call('sprintf', 'values left over', () => ['', json(manyTexts(() => ''))]),
  call('sprintf', 'missing values', () => [repeated('%d'), []]),
  call('sprintf', 'a deep set', () => ['%v', [nested(2000, (inner) => new Set([inner]))]]),
  call('sprintf', 'deep around a long text', () => ['%v', [deepAroundText()]]),
  call('sprintf', 'sets in sets', () => ['%v', [setsInSets()]]),
  call('units.parse', 'a long number', () => [repeated('9')]),
  call('units.parse', 'many decimals', () => [`0.${repeated('7')}k`]),
  call('units.parse', 'an exponent', () => ['1e9999']),
  call('units.parse', 'a small one', () => [`1${repeated('7', half)}.${repeated('7', half)}e-9999m`]),
  call('units.parse_bytes', 'many decimals', () => [`0.${repeated('7')}ki`]),
  call('semver.compare', 'long numbers', () => [`1.2.3-${repeated('9', half)}`, `1.2.3-${repeated('9', half)}`]),
  call('semver.compare', 'many identifiers', () => [
    `1.2.3-${repeated('1.', half)}1`,
    `1.2.3-${repeated('1.', half)}1`,
  ]),
  call('semver.compare', 'long versions', () => [`${repeated('9', half)}.2.3`, '1.2.3']),
  call('semver.is_valid', 'a torn end', () => [`1.2.3-${repeated('a.')}!`]),
  call('numbers.range_step', 'a million', () => [1, 1_000_000, 1]),
  call('numbers.range_step', 'far apart', () => [0, 10n ** 300n, 10n ** 294n]),
  call('rand.intn', 'a long purpose', () => [repeated('a'), 10]),
  call('uuid.rfc4122', 'a long purpose', () => [repeated('a')]),
  call('uuid.parse', 'a long text', () => [repeated('a')]),
  call('trace', 'a long text', () => [repeated('a')]),
  call('internal.print', 'sets in sets', () => [[new Set([setsInSets()])]]),
  call('internal.print', 'large exponents', () => [[new Set([largeExponents()])]]),
  call('time.now_ns', 'nothing', () => []),
  call('time.add_date', 'large numbers', () => [1, BigInt(repeated('9', half)), 1, 1]),
  ...['time.clock', 'time.date', 'time.weekday'].flatMap((name) => [
    call(name, 'a zone', () => [[1_700_000_000_000_000_000n, 'America/Sao_Paulo']]),
    call(name, 'no zone', () => [[1_700_000_000_000_000_000n, repeated('A')]]),
  ]),
  call('time.diff', 'zones', () => [
    [1_700_000_000_000_000_000n, 'Pacific/Auckland'],
    [1_100_000_000_000_000_000n, 'Asia/Tehran'],
  ]),
  ...['2', 'January', 'MST', '.000000000', '.0', ',9', 'x', '__'].map((part) =>
    call('time.format', `a layout of ${part}`, () => [[1_700_000_000_000_000_001n, 'Europe/Berlin', repeated(part)]]),
  ),
  call('time.format', 'a fraction that does not end', () => [[1, 'UTC', `.${repeated('0')}1`]]),
  call('time.format', 'fractions that do not end', () => [[1, 'UTC', repeated('.01')]]),
  call('time.parse_ns', 'names of months', () => [repeated('Jan', half), repeated('Jan', half)]),
  call('time.parse_ns', 'a long fraction', () => [`.${repeated('0', half)}`, `.${repeated('0', half)}`]),
  call('time.parse_ns', 'seconds', () => [repeated('5.', half), repeated('5.', half)]),
  call('time.parse_ns', 'spaces', () => [repeated(' x', half), repeated(' x', half)]),
  call('time.parse_ns', 'years', () => [repeated('2006', half), repeated('2006', half)]),
  call('time.parse_rfc3339_ns', 'a long fraction', () => [`2006-01-02T15:04:05.${repeated('0')}Z`]),
  call('time.parse_duration_ns', 'many parts', () => [repeated('1h')]),
  call('time.parse_duration_ns', 'a long unit', () => [`1${repeated('h')}.`]),
  call('time.parse_duration_ns', 'a long fraction', () => [`1.${repeated('0')}h`]),
]

function deepAroundText(): Value {
  return nested(1_500, (inner) => [inner, 1], repeated('a', half))
}

/** Alike up to their last members, so that to order them takes long. */
function setsInSets(): Value {
  const build = (depth: number, leaf: number): Value =>
    depth === 0 ? leaf : new Set([build(depth - 1, 0), build(depth - 1, leaf + 1)])
  const leaves = Array.from({ length: 60 }, (_, index) => build(6, index))
  return new Set(leaves)
}

/** Digits of their own, and so far from the point that nobody should write them out. */
function largeExponents(): Value {
  return parseValue(`{${manyTexts((index) => `${index + 1}e${9_999 - (index % 100)}`).join(',')}}`)
}

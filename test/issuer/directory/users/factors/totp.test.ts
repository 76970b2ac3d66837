import { describe, expect, test } from 'vitest'
import { newBackupCodes, readBackupCode } from '../../../../../issuer/directory/users/factors/backup-codes.ts'
import { fromBase32, toBase32 } from '../../../../../issuer/directory/users/factors/base32.ts'
import {
  hotp,
  matchingStep,
  newTotpSecret,
  qrDataUrl,
  qrSvg,
  readTotpSecret,
  totpStep,
  totpUri,
} from '../../../../../issuer/directory/users/factors/totp.ts'

/** Of the RFCs' examples. */
const secret = Buffer.from('12345678901234567890')
const at = (seconds: number) => new Date(seconds * 1000)

describe('codes', () => {
  // RFC 4226, appendix D.
  const counted = '755224 287082 359152 969429 338314 254676 287922 162583 399871 520489'.split(' ')
  test.each(counted.map((code, counter) => [counter, code] as const))('RFC 4226: of counter %i', (counter, code) => {
    expect(hotp(secret, counter)).toBe(code)
  })

  // RFC 6238, appendix B: SHA-1, eight digits.
  const timed: [seconds: number, code: string][] = [
    [59, '94287082'],
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ]
  test.each(timed)('RFC 6238: at %i s', (seconds, code) => {
    expect(hotp(secret, totpStep(at(seconds)), 8)).toBe(code)
    expect(matchingStep(secret, code.slice(2), at(seconds))).toBe(Math.floor(seconds / 30))
  })

  test('T 81: clocks may be off by one step, not by two', () => {
    const now = at(1_700_000_000)
    const step = totpStep(now)
    const found = [-2, -1, 0, 1, 2].map((off) => matchingStep(secret, hotp(secret, step + off), now))
    expect(found).toEqual([undefined, step - 1, step, step + 1, undefined])
  })

  test('are read with blanks and in full width, and in no other way', () => {
    const now = at(1_700_000_000)
    const step = totpStep(now)
    const code = hotp(secret, step)
    const wide = [...code].map((digit) => String.fromCodePoint(digit.codePointAt(0)! + 0xfee0)).join('')
    for (const typed of [code, ` ${code.slice(0, 3)} ${code.slice(3)}\n`, wide]) {
      expect(matchingStep(secret, typed, now)).toBe(step)
    }
    for (const typed of ['', code.slice(1), `${code}0`, `+${code.slice(1)}`, code.replace(/.$/, 'x')]) {
      expect(matchingStep(secret, typed, now)).toBeUndefined()
    }
  })

  test('a code that two steps share uses the later up, so that it is not good twice', () => {
    // Found by trying: the codes of these two steps are the same.
    const step = 910_737
    expect(hotp(secret, step + 1)).toBe(hotp(secret, step))
    expect(matchingStep(secret, hotp(secret, step), at(step * 30))).toBe(step + 1)
  })
})

describe('secrets', () => {
  // RFC 4648 §10.
  const examples: [text: string, base32: string][] = [
    ['', ''],
    ['f', 'MY'],
    ['fo', 'MZXQ'],
    ['foo', 'MZXW6'],
    ['foob', 'MZXW6YQ'],
    ['fooba', 'MZXW6YTB'],
    ['foobar', 'MZXW6YTBOI'],
  ]
  test.each(examples)('RFC 4648: %j', (text, base32) => {
    expect(toBase32(Buffer.from(text))).toBe(base32)
    expect(fromBase32(base32.toLowerCase().padEnd(Math.ceil(base32.length / 8) * 8, '='))?.toString()).toBe(text)
  })

  test.each(['M', 'MZX', 'MZXW6Y', 'M1', 'MZ XQ', 'MZ=Q', 'MZ'])('%j is none', (text) => {
    expect(fromBase32(text)).toBeUndefined()
  })

  test('have 20 bytes, and between 16 and 64 where they come from elsewhere', () => {
    expect(readTotpSecret(newTotpSecret())).toHaveLength(20)
    expect(newTotpSecret()).not.toBe(newTotpSecret())
    const read = (length: number) => readTotpSecret(toBase32(Buffer.alloc(length)))?.length
    expect([15, 16, 64, 65].map(read)).toEqual([undefined, 16, 64, undefined])
  })

  test('are shown to authenticator apps, whatever the account is named', () => {
    const uri = totpUri({ issuer: 'Acme & Söhne', account: 'a:b/?#&secret=x@y.test', secret: 'MZXW6YTB' })
    expect(uri).toBe(
      'otpauth://totp/Acme%20%26%20S%C3%B6hne:a%3Ab%2F%3F%23%26secret%3Dx%40y.test?secret=MZXW6YTB&issuer=Acme%20%26%20S%C3%B6hne&algorithm=SHA1&digits=6&period=30',
    )
    expect([...new URL(uri).searchParams]).toEqual([
      ['secret', 'MZXW6YTB'],
      ['issuer', 'Acme & Söhne'],
      ['algorithm', 'SHA1'],
      ['digits', '6'],
      ['period', '30'],
    ])
  })

  test('are pictures that load nothing and run nothing', () => {
    const svg = qrSvg('otpauth://totp/x')
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox="0 0 \d+ \d+"[^>]*>/)
    expect(svg).not.toMatch(/script|style|href|url\(|\son\w+=/)
    const [head, body] = qrDataUrl('otpauth://totp/x').split(',')
    expect([head, Buffer.from(body!, 'base64').toString()]).toEqual(['data:image/svg+xml;base64', svg])
  })
})

describe('backup codes', () => {
  test('are ten of 50 bits, in characters that are not mistaken for each other', () => {
    const codes = newBackupCodes()
    expect(codes).toHaveLength(10)
    expect(new Set(codes).size).toBe(10)
    for (const code of codes) expect(code).toMatch(/^[0-9A-HJKMNP-TV-Z]{5}-[0-9A-HJKMNP-TV-Z]{5}$/)
    // Every character stands everywhere: of 2000 drawn from 32 none is missing but by a fault.
    const all = Array.from({ length: 200 }, newBackupCodes).flat()
    for (let place = 0; place < 11; place++) {
      expect(new Set(all.map((code) => code[place])).size).toBe(place === 5 ? 1 : 32)
    }
  })

  test('are read however they are typed', () => {
    const code = '4WJ7K-01MQX'
    const typed = ['4WJ7K01MQX', ' 4wj7k - 01mqx ', '4WJ7K-OiMQX', '4wj7k olmqx', '４ＷＪ７Ｋ−01MQX'.replace('−', '-')]
    expect(typed.map(readBackupCode)).toEqual(typed.map(() => code.replace('-', '')))
    for (const wrong of ['', '4WJ7K-01MQ', '4WJ7K-01MQXX', '4WJ7K-01MQU', ' '.repeat(65)]) {
      expect(readBackupCode(wrong)).toBeUndefined()
    }
  })
})

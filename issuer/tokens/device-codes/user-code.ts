import { randomInt } from 'node:crypto'
import type { Hmac } from '../../base/hmac-keys-store.ts'

// RFC 8628 §6.1: consonants, so that it is no word and no digit is taken for a letter. 20^8 are 34.6 bits.
const letters = 'BCDFGHJKLMNPQRSTVWXZ'
const length = 8

export const newUserCode = (): string => {
  const code = Array.from({ length }, () => letters[randomInt(letters.length)]).join('')
  return shownUserCode(code)
}

/** `XXXX-XXXX`. */
const shownUserCode = (code: string): string => `${code.slice(0, 4)}-${code.slice(4)}`

/** As it is shown, however it was typed; undefined when it is no user code. */
export const readUserCode = (entered: string): string | undefined => {
  // What nobody would type as part of it is not taken away, so that a longer text is none by accident.
  const code = entered
    .slice(0, 32)
    .normalize('NFKC')
    .replace(/[\s\-_.]/gu, '')
    .toUpperCase()
  return code.length === length && [...code].every((letter) => letters.includes(letter))
    ? shownUserCode(code)
    : undefined
}

/** What the database knows it by. */
export const userCodeKey = (hmac: Hmac, userCode: string): Buffer => hmac('user-codes', userCode)

import { runeOf } from '../rune.ts'

/** How Go writes texts in quotes (`strconv.Quote`). */

const named: Record<string, string> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
}

const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u

/** Letters, marks, numbers, punctuation, symbols, and the ASCII space. */
export const isPrintable = (character: string): boolean => printable.test(character)

const escaped = (character: string, mark: string, asciiOnly: boolean): string => {
  const code = runeOf(character)
  if (character === mark) return `\\${mark}`
  if (named[character]) return named[character]
  if ((code >= 0x20 && code < 0x7f) || (!asciiOnly && isPrintable(character))) return character
  if (code < 0x20 || code === 0x7f) return `\\x${code.toString(16).padStart(2, '0')}`
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, '0')}`
  return `\\U${code.toString(16).padStart(8, '0')}`
}

export const quote = (text: string, { mark = '"', asciiOnly = false } = {}): string => {
  let result = mark
  for (const character of text.toWellFormed()) result += escaped(character, mark, asciiOnly)
  return result + mark
}

/** Whether Go can write the text between backquotes. */
export const canBackquote = (text: string): boolean => !/[\0-\x08\x0a-\x1f\x7f`\ufeff\ufffd]/.test(text)

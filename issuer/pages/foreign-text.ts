import { type Html, html } from './html.ts'

/** Text that somebody else has chosen: names of applications, people and organizations, what stood in a request. */

// Controls of C0 and C1, and those that turn the direction of what follows (Unicode UAX #9 §2).
const controls = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** On one line, without what steers the text around it, at most `length` code points. */
export const tidy = (text: string, length: number): string => {
  // What is cut away need not be looked at.
  const characters = [
    ...text
      .slice(0, 8 * length)
      .toWellFormed()
      .replace(/\s+/gu, ' ')
      .replace(controls, '')
      .trim(),
  ]
  return characters.length <= length
    ? characters.join('')
    : `${characters
        .slice(0, length - 1)
        .join('')
        .trimEnd()}…`
}

const nameLength = 60

/** A name within our text. Its direction is its own. */
export const foreignName = (name: string, length = nameLength): Html => html`<bdi>${tidy(name, length)}</bdi>`

/** For `<title>`, which holds no elements: FSI … PDI do what `<bdi>` does. */
export const foreignNameInTitle = (name: string): string => `\u2068${tidy(name, nameLength)}\u2069`

/** A sentence: the description of a permission. */
export const foreignSentence = (text: string): Html => html`<bdi>${tidy(text, 160)}</bdi>`

/** A value to compare with what one has: an address, the name of a scope. */
export const foreignValue = (text: string, length = 300): Html => html`<code><bdi>${tidy(text, length)}</bdi></code>`

/** The first letter of a name, for applications without a logo. */
export const initialOf = (name: string): string => {
  const [first = ''] = /[\p{L}\p{N}]/u.exec(tidy(name, nameLength)) ?? []
  return first.toUpperCase()
}

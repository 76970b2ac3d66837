import { type Html, html } from './html.ts'

/** Text that somebody else has chosen: names of applications, people and organizations, what stood in a request. */

// Controls, and what nobody sees: marks of direction (Unicode UAX #9 §2), spaces without a width. But the two joiners
// are part of how Persian, the languages of India, and emoji are written.
const unseen = /(?![\u200c\u200d])[\p{Cc}\p{Cf}]/gu

/** On one line, without what steers the text around it, at most `length` code points. */
export const tidy = (text: string, length: number): string => {
  // What is cut away need not be looked at.
  const characters = [
    ...text
      .slice(0, 8 * length)
      .toWellFormed()
      .replace(/\s+/gu, ' ')
      .replace(unseen, '')
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
export const foreignName = (name: string, length = nameLength): Html => html`<bdi>${tidy(name, length) || '…'}</bdi>`

/** For `<title>`, which holds no elements: FSI … PDI do what `<bdi>` does. */
export const foreignNameInTitle = (name: string): string => `\u2068${tidy(name, nameLength)}\u2069`

/** A sentence: the description of a permission. */
export const foreignSentence = (text: string): Html => html`<bdi>${tidy(text, 160)}</bdi>`

/**
 * A value to compare with what one has: an address, the name of a scope. What nobody sees may be why it is refused, so
 * it is written out.
 */
export const foreignValue = (text: string, length = 300): Html => {
  const visible = text
    .slice(0, 8 * length)
    .replace(unseen, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
  return html`<code><bdi>${tidy(visible, length)}</bdi></code>`
}

/** The first letter of a name, for applications without a logo. */
export const initialOf = (name: string): string => {
  const [first = ''] = /[\p{L}\p{N}]/u.exec(tidy(name, nameLength)) ?? []
  return first.toUpperCase()
}

/**
 * What stands for the names in braces. Codes and links are ours, and anything else there is a fault; the rest was
 * chosen by people, so it is made harmless rather than refused: a change of a password must not fail for a name.
 */

export class VariableRefused extends Error {
  override readonly name = 'VariableRefused'
}

/** Variables that we make: they must look like this. */
const ours: Readonly<Record<string, RegExp>> = {
  code: /^[A-Za-z\d-]{4,32}$/,
  minutes: /^\d{1,6}$/,
  left: /^\d{1,6}$/,
  number: /^\d{2,8}$/,
}

const longest = 200

// Controls, marks of direction and what has no width; but the two joiners belong to how languages and emoji are
// written.
const unseen = /(?![\u200c\u200d])[\p{Cc}\p{Cf}]/gu
const urls = /(?:\p{L}[\p{L}\d+.-]*:\/\/|www\.)\S*/giu

/**
 * One line in which no mail program finds a link: addresses with a scheme are taken out, and what it would take for a
 * host falls apart.
 */
export const withoutLinks = (text: string): string =>
  text
    .slice(0, 8 * longest)
    .toWellFormed()
    .replace(/\s+/gu, ' ')
    .replace(unseen, '')
    .replace(urls, '')
    // The dots of other scripts lead to hosts too (RFC 3490 §3.1).
    .replace(/[.\u3002\uff0e\uff61](?=[\p{L}\d])/gu, '. ')
    .replace(/:?\/\/+/g, ' ')
    .replace(/ {2,}/g, ' ')
    .trim()
    .slice(0, longest)

const readVariable = (name: string, value: string, baseUrl: string): string => {
  const form = ours[name]
  if (form) {
    if (!form.test(value)) throw new VariableRefused(`The variable ${name} of a message is not what it must be.`)
    return value
  }
  if (name !== 'link') return withoutLinks(value) || '…'
  const isOurs = (value === baseUrl || value.startsWith(`${baseUrl}/`)) && /^[\x21-\x7e]+$/.test(value)
  if (!isOurs) throw new VariableRefused('A link of a message must lead to this service.')
  return value
}

/** Throws `VariableRefused`. */
export const readVariables = (variables: Readonly<Record<string, string>>, baseUrl: string): Record<string, string> =>
  Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, readVariable(name, value, baseUrl)]))

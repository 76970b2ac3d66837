const form = /^https?:\/\/[^\s\\@]+$/i
const unreserved = /^[\w.~-]$/

/** An address in the normal form of RFC 3986 §6.2.2 and §6.2.3, without query and fragment; undefined: it is none. */
const normal = (text: string): string | undefined => {
  if (!form.test(text) || !URL.canParse(text)) return undefined
  const { origin, pathname } = new URL(text)
  const path = pathname.replace(/%[\da-f]{2}/gi, (octet) => {
    const character = String.fromCharCode(Number.parseInt(octet.slice(1), 16))
    return unreserved.test(character) ? character : octet.toUpperCase()
  })
  return origin + path
}

/** Whether the `htu` of a proof is the address `target` of ours (RFC 9449 §4.3). */
export const namesTarget = (htu: string, target: string): boolean => htu === target || normal(htu) === normal(target)

/** b64token of RFC 6750 §2.1, of a length that is worth asking about. */
const worthAsking = /^[\w.~+/-]{16,4096}={0,2}$/

/**
 * Whether a token is one that only its issuer can read. One that begins with the header of a JWT or JWE (RFC 7515 §3.1,
 * RFC 7516 §3.1) is not, whatever follows: it says itself who made it, and is shown to nobody else.
 */
export const isOpaque = (token: string): boolean => worthAsking.test(token) && !beginsWithHeader(token)

const beginsWithHeader = (token: string): boolean => {
  const dot = token.indexOf('.')
  if (dot <= 0) return false
  const text = Buffer.from(token.slice(0, dot), 'base64url').toString().trimStart()
  if (!text.startsWith('{')) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

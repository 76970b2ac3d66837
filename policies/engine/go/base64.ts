/** Go's `base64.StdEncoding`: with padding, line ends anywhere, no other space. `undefined` for anything else. */
export const decodeBase64 = (text: string): Buffer | undefined => {
  const bare = text.replace(/[\r\n]/g, '')
  if (bare.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(bare)) return undefined
  return Buffer.from(bare, 'base64')
}

/**
 * Bytes of base64url as OPA takes it; `undefined` when it is none. Padding may be missing, but what ends with `=` must
 * be padded right, and line ends count when the length says how much is missing.
 */
export const decodeBase64url = (text: string): Buffer | undefined => {
  const missing = text.endsWith('=') ? '' : { 0: '', 2: '==', 3: '=' }[text.length % 4]
  if (missing === undefined || /[+/]/.test(text)) return undefined
  return decodeBase64((text + missing).replaceAll('-', '+').replaceAll('_', '/'))
}

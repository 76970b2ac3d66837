import { type KeyObject, sign } from 'node:crypto'

/** JWTs by ES256, signed synchronously: some ten thousand are needed for a round. */
export const jwtSigner = (privateKey: KeyObject, header: object): ((claims: object) => string) => {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const head = encode({ alg: 'ES256', ...header })
  return (claims) => {
    const input = `${head}.${encode(claims)}`
    const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })
    return `${input}.${signature.toString('base64url')}`
  }
}

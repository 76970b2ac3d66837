import type { Secret } from '../../platform/secret.ts'

// RFC 6749 §2.3.1: both are form-encoded first.
const formEncoded = (text: string) => new URLSearchParams([['', text]]).toString().slice(1)

/** The `Authorization` field with which the gateway's own client shows itself to its issuer. */
export const basicAuthorization = ({ id, secret }: { id: string; secret: Secret }): string =>
  `Basic ${Buffer.from(`${formEncoded(id)}:${formEncoded(secret.reveal())}`).toString('base64')}`

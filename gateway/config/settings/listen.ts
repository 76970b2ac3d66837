import { z } from 'zod'
import { port } from './values.ts'

/** `listen:`, the public listener. */

export const address = (defaultPort: number) => ({
  host: z.string().min(1).default('127.0.0.1').describe('Address to listen on; 0.0.0.0 for every one.'),
  port: port.prefault(defaultPort).describe('Port; 0 for any free one.'),
})

const certificate = z.strictObject({
  cert: z.string().min(1).describe('PEM file: the certificate, then those that lead to its authority.'),
  key: z.string().min(1).describe('PEM file of its private key, without a passphrase.'),
})

export const tls = z.strictObject({
  certificates: z
    .array(certificate)
    .min(1)
    .describe('One is chosen by the name that a client asks for; the first for clients that ask for none of theirs.'),
  clientCa: z.string().min(1).optional().describe('PEM file of the authorities whose client certificates are taken.'),
  clientCertificate: z
    .enum(['optional', 'required'])
    .optional()
    .describe('Whether a client may come without a certificate. Default, with `clientCa`: `required`.'),
  minVersion: z.literal(['1.2', '1.3', 1.2, 1.3]).default('1.2').describe('The oldest version of TLS: `1.2` or `1.3`.'),
})

export type TlsSettings = z.output<typeof tls>
export type CertificateFiles = z.output<typeof certificate>

export const listen = z
  .strictObject({
    ...address(3000),
    tls: tls.optional().describe('Certificates: the listener speaks TLS. Their files are followed.'),
    http2: z
      .boolean()
      .optional()
      .describe('Whether HTTP/2 is spoken with clients that choose it. Needs `tls`, and is on with it.'),
  })
  .prefault({})

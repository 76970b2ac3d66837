import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { StartupError } from '../../platform/startup-error.ts'
import type { CertificateFiles } from '../config/settings/listen.ts'

/** A certificate with its key, both read and found to belong together. */
export interface Certificate {
  readonly files: CertificateFiles
  readonly cert: string
  readonly key: string
  /** The names that it is good for, lower-case; `*.` stands for one label. */
  readonly names: readonly string[]
  /** In ms since 1970. */
  readonly notAfter: number
}

/** Throws `StartupError` for files that cannot be read, are not what they should be, or do not belong together. */
export const readCertificate = async (files: CertificateFiles): Promise<Certificate> => {
  const [cert, key] = await Promise.all([text(files.cert), text(files.key)])
  const certificate = attempt(() => new X509Certificate(cert), `${files.cert} holds no certificate in PEM.`)
  if (isEncrypted(key)) throw invalid(`The key ${files.key} is encrypted: decrypt it, a passphrase cannot be given.`)
  const privateKey = attempt(() => createPrivateKey(key), `${files.key} holds no private key in PEM.`)
  if (!certificate.checkPrivateKey(privateKey)) throw invalid(`The key ${files.key} is not that of ${files.cert}.`)
  attempt(() => createSecureContext({ cert, key }), `${files.cert} and ${files.key} cannot be used for TLS.`)
  return { files, cert, key, names: dnsNames(certificate), notAfter: certificate.validToDate.getTime() }
}

/** The authorities of client certificates, as PEM. Throws `StartupError` as well. */
export const readAuthorities = async (file: string): Promise<string> => {
  const pem = await text(file)
  const found = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []
  if (found.length === 0) throw invalid(`${file} holds no certificate in PEM.`)
  for (const one of found) attempt(() => new X509Certificate(one), `${file} holds a certificate that cannot be read.`)
  return pem
}

/** Throws `StartupError` for one whose time is over. */
export const requireUnexpired = ({ notAfter, files }: Certificate, now: number): void => {
  if (notAfter <= now)
    throw invalid(`The certificate ${files.cert} has expired on ${new Date(notAfter).toISOString()}.`)
}

const text = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((cause: unknown) => {
    throw invalid(`The file ${file} of tls cannot be read.`, cause)
  })

/** PKCS #8 (RFC 7468 §11), or the older form (RFC 1421 §4.6.1.1). */
const isEncrypted = (pem: string): boolean =>
  /^-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(pem)

const attempt = <Result>(make: () => Result, message: string): Result => {
  try {
    return make()
  } catch (cause) {
    throw invalid(message, cause)
  }
}

const invalid = (message: string, cause?: unknown) =>
  new StartupError(message, { hint: 'See "TLS and HTTP/2" in docs/operators.md.', cause })

/** RFC 6125 §6.4.4: where a certificate has names, only these count, and the common name does not. */
const dnsNames = ({ subjectAltName = '' }: X509Certificate): string[] =>
  [...subjectAltName.matchAll(/(?:^|, )DNS:((?:\*\.)?[A-Za-z0-9_.-]+)(?=,|$)/g)].map(([, name]) => name!.toLowerCase())

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface ServerCertificate {
  key: string
  cert: string
}

/** An authority of certificates for the length of a test file; its own is to be trusted, or not, by the test. */
export const createAuthority = () => {
  const folder = mkdtempSync(join(tmpdir(), 'surrogate-ca-'))
  const path = (name: string) => join(folder, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  const newRsaKey = ['-newkey', 'rsa:2048', '-nodes']
  const authority = ['-subj', '/CN=Test authority', '-keyout', path('ca-key.pem'), '-out', path('ca.pem')]
  openssl('req', '-x509', ...newKey, '-days', '2', ...authority)
  let number = 0

  return {
    certificate: readFileSync(path('ca.pem'), 'utf8'),
    /** For a host name, or other `names`; `expired`: since yesterday; `digest`: of the signature; `rsa`: of the key. */
    issue(
      host: string,
      { expired = false, digest = 'sha256', rsa = false, names: alternatives = `DNS:${host}` } = {},
    ): ServerCertificate {
      number += 1
      const [key, request, cert, names] = ['key', 'csr', 'pem', 'ext'].map((end) => path(`${number}.${end}`)) as [
        string,
        string,
        string,
        string,
      ]
      writeFileSync(names, `subjectAltName=${alternatives}`)
      openssl('req', ...(rsa ? newRsaKey : newKey), '-subj', `/CN=${host}`, '-keyout', key, '-out', request)
      const issuer = ['-CA', path('ca.pem'), '-CAkey', path('ca-key.pem'), '-CAcreateserial']
      // A negative number of days ends before it begins.
      const days = ['-days', expired ? '-1' : '2']
      openssl('x509', '-req', '-in', request, ...issuer, ...days, `-${digest}`, '-extfile', names, '-out', cert)
      return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
    },
    selfSigned(host: string): ServerCertificate {
      const files = ['-keyout', path('self-key.pem'), '-out', path('self.pem')]
      openssl(
        'req',
        '-x509',
        ...newKey,
        '-days',
        '2',
        '-subj',
        `/CN=${host}`,
        '-addext',
        `subjectAltName=DNS:${host}`,
        ...files,
      )
      return { key: readFileSync(path('self-key.pem'), 'utf8'), cert: readFileSync(path('self.pem'), 'utf8') }
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

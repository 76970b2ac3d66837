import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { join } from 'node:path'
import { haproxyCommand, startInstalled } from '../harness/installed.ts'
import { runServer } from '../harness/server.ts'

/**
 * HAProxy with `jwt_verify` and the checks of claims that the gateway makes of the bench token: `alg`, `typ`, `iss`,
 * `aud`, `exp` and one scope; identity headers of clients removed, and set from the token. One thread, no log. It
 * remembers no token: every request's signature is verified. It has no rules, no revocations and reads no key set.
 */
export type HaproxySettings = { upstream: string; issuer: string; audience: string; key: JsonWebKey; scope: string }

runServer((settings: HaproxySettings) =>
  startInstalled({
    files: ({ folder, port }) => ({
      'key.pem': createPublicKey({ key: settings.key, format: 'jwk' })
        .export({ type: 'spki', format: 'pem' })
        .toString(),
      'haproxy.cfg': configuration({ ...settings, folder, port }),
    }),
    command: ({ folder }) => ({ name: haproxyCommand, args: ['-db', '-q', '-f', join(folder, 'haproxy.cfg')] }),
  }),
)

const claims = ['iss', 'aud', 'sub', 'scope', 'client_id'] as const

const configuration = (settings: HaproxySettings & { folder: string; port: number }) => `
global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 2s
  timeout client 75s
  timeout server 60s
  http-reuse always
frontend public
  bind 127.0.0.1:${settings.port}
  http-request set-var(txn.token) http_auth_bearer
  http-request set-var(txn.alg) var(txn.token),jwt_header_query('$.alg')
  http-request set-var(txn.typ) var(txn.token),jwt_header_query('$.typ')
${claims.map((name) => `  http-request set-var(txn.${name}) var(txn.token),jwt_payload_query('$.${name}')`).join('\n')}
  http-request set-var(txn.exp) var(txn.token),jwt_payload_query('$.exp','int')
  http-request set-var(txn.now) date()
  http-request deny deny_status 401 unless { var(txn.alg) -m str ES256 } { var(txn.typ) -m str at+jwt }
  http-request deny deny_status 401 unless { var(txn.token),jwt_verify(txn.alg,"${settings.folder}/key.pem") -m int 1 }
  http-request deny deny_status 401 unless { var(txn.iss) -m str ${settings.issuer} } { var(txn.aud) -m str ${settings.audience} }
  http-request deny deny_status 401 unless { var(txn.now),sub(txn.exp) -m int lt 0 }
  http-request deny deny_status 403 unless { var(txn.scope),concat(" "),regsub(^," ") -m sub " ${settings.scope} " }
  http-request del-header x-auth- -m beg
  http-request set-header x-auth-sub %[var(txn.sub)]
  http-request set-header x-auth-scope %[var(txn.scope)]
  http-request set-header x-auth-client-id %[var(txn.client_id)]
  http-request set-header x-forwarded-for %[src]
  http-request set-header x-forwarded-proto http
  http-request set-header x-forwarded-host %[req.hdr(host)]
  http-request set-header x-request-id %[uuid()]
  default_backend api
backend api
  server api ${new URL(settings.upstream).host}
`

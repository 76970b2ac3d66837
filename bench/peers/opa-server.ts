import { join } from 'node:path'
import { findOpa } from '../../policies/engine/index.ts'
import { nginxCommand, type Place, startInstalled } from '../harness/installed.ts'
import { type Listening, runServer } from '../harness/server.ts'

/**
 * The OPA that npm brings as a server, which verifies the token of each request (`io.jwt.decode_verify`) and decides by
 * a rule; and, with `upstream`, nginx before it: a proxy that asks OPA by `auth_request` and forwards what is allowed.
 * As the gateway does, the rule checks `alg`, `typ`, `iss`, `aud`, `exp` and one scope. Neither process writes a log.
 */
export type OpaServerSettings = {
  issuer: string
  audience: string
  scope: string
  jwks: object
  /** Without: OPA alone, asked over its Data API. */
  upstream?: string
  /** Whether OPA keeps verified tokens, which is off unless it is configured. */
  remember?: boolean
}

runServer(async (settings: OpaServerSettings): Promise<Listening> => {
  const opa = await startOpa(settings, await findOpa())
  if (settings.upstream === undefined) return opa
  const nginx = await startNginx(opa.port, settings.upstream)
  return {
    port: nginx.port,
    cpu: () => opa.cpu!() + nginx.cpu!(),
    stop: async () => {
      await nginx.stop()
      await opa.stop()
    },
  }
})

const startOpa = ({ remember = false, ...settings }: OpaServerSettings, opa: string): Promise<Listening> =>
  startInstalled({
    files: () => ({
      'gateway.rego': rules(settings),
      'data.json': JSON.stringify({ jwks: JSON.stringify(settings.jwks) }),
    }),
    command: ({ folder, port }) => ({
      name: opa,
      args: [
        ...['run', '--server', '--addr', `127.0.0.1:${port}`, '--log-level', 'error', '--skip-version-check'],
        ...(remember ? ['--set', 'caching.inter_query_builtin_value_cache.named.io_jwt.max_num_entries=1000'] : []),
        ...[join(folder, 'gateway.rego'), join(folder, 'data.json')],
      ],
    }),
  })

const rules = ({ issuer, audience, scope }: Pick<OpaServerSettings, 'issuer' | 'audience' | 'scope'>): string => `
package gateway

allow if {
	input.method in ["GET", "HEAD"]
	startswith(input.authorization, "Bearer ")
	token := substring(input.authorization, 7, -1)
	constraints := {"cert": data.jwks, "alg": "ES256", "iss": ${JSON.stringify(issuer)}, "aud": ${JSON.stringify(audience)}}
	[valid, header, claims] := io.jwt.decode_verify(token, constraints)
	valid
	header.typ == "at+jwt"
	${JSON.stringify(scope)} in split(claims.scope, " ")
}
`

/** What is undefined OPA answers with 404; `auth_request` knows 2xx, 401 and 403. */
const startNginx = (opa: number, upstream: string): Promise<Listening> =>
  startInstalled({
    files: (place) => ({ 'nginx.conf': nginxConfiguration({ ...place, opa, upstream: new URL(upstream).host }) }),
    command: ({ folder }) => ({
      name: nginxCommand,
      args: ['-c', join(folder, 'nginx.conf'), '-p', folder, '-e', 'stderr'],
    }),
  })

const nginxConfiguration = ({ folder, port, opa, upstream }: Place & { opa: number; upstream: string }): string => `
daemon off;
master_process off;
worker_processes 1;
pid ${folder}/pid;
events { worker_connections 512; }
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
  keepalive_requests 1000000000;
  upstream api { server ${upstream}; keepalive 64; keepalive_requests 1000000000; }
  upstream opa { server 127.0.0.1:${opa}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      auth_request /decision;
      proxy_pass http://api;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $remote_addr;
    }
    location = /decision {
      internal;
      proxy_pass http://opa/v0/data/gateway/allow;
      proxy_method POST;
      proxy_http_version 1.1;
      proxy_pass_request_headers off;
      proxy_set_header Connection "";
      proxy_set_header Content-Type application/json;
      proxy_set_body '{"method":"$request_method","path":"$uri","authorization":"$http_authorization"}';
      proxy_intercept_errors on;
      error_page 404 = @denied;
    }
    location @denied { internal; return 403; }
  }
}
`

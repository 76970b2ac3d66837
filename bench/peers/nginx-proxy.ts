import { join } from 'node:path'
import { nginxCommand, startInstalled } from '../harness/installed.ts'
import { runServer } from '../harness/server.ts'

/**
 * nginx as a plain proxy, for orientation: one process, kept-alive connections to both sides, no log. It routes,
 * verifies and decides nothing, and is not written in JavaScript. This process only starts it and reads its CPU time.
 */
export type NginxSettings = {
  upstream: string
  /** Files; it then serves HTTP/1.1 and HTTP/2 over TLS. */
  certificate?: { cert: string; key: string }
}

runServer(({ upstream, certificate }: NginxSettings) =>
  startInstalled({
    files: ({ folder, port }) => ({
      'nginx.conf': configuration({ folder, port, upstream: new URL(upstream).host, certificate }),
    }),
    command: ({ folder }) => ({
      name: nginxCommand,
      args: ['-c', join(folder, 'nginx.conf'), '-p', folder, '-e', 'stderr'],
    }),
  }),
)

type Configuration = { folder: string; port: number; upstream: string; certificate: NginxSettings['certificate'] }

const configuration = ({ folder, port, upstream, certificate }: Configuration) => `
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
  server {
    listen 127.0.0.1:${port}${certificate ? ' ssl http2' : ''};
    ${certificate ? `ssl_certificate ${certificate.cert}; ssl_certificate_key ${certificate.key}; ssl_protocols TLSv1.2 TLSv1.3;` : ''}
    location / {
      proxy_pass http://api;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $remote_addr;
    }
  }
}
`

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../test/support/free-port.ts'
import { nginxCommand } from '../harness/nginx.ts'
import { runServer } from '../harness/server.ts'

/**
 * nginx as a plain proxy, for orientation: one process, kept-alive connections to both sides, no log. It routes,
 * verifies and decides nothing, and is not written in JavaScript. This process only starts it and reads its CPU time.
 */
runServer(async ({ upstream }: { upstream: string }) => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-bench-'))
  const port = await freePort()
  const file = join(folder, 'nginx.conf')
  await writeFile(file, configuration({ folder, port, upstream: new URL(upstream).host }))
  const child = spawn(nginxCommand, ['-c', file, '-p', folder, '-e', 'stderr'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  await answers(port)
  return {
    port,
    cpu: () => cpuMicros(child.pid!),
    stop: async () => {
      child.kill()
      await gone
      await rm(folder, { recursive: true })
    },
  }
})

const configuration = ({ folder, port, upstream }: { folder: string; port: number; upstream: string }) => `
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
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://api;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $remote_addr;
    }
  }
}
`

const answers = async (port: number): Promise<void> => {
  for (let attempt = 0; attempt < 200; attempt++) {
    const connected = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (connected) return
    await delay(25)
  }
  throw new Error('nginx does not answer')
}

/**
 * proc(5): utime and stime of all threads are the 14th and 15th field, in ticks of 10 ms; the name before them may hold
 * spaces.
 */
const cpuMicros = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

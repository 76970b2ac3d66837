import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../test/support/free-port.ts'
import type { Listening } from './server.ts'

/** Proxies that the machine has, as processes of their own whose CPU time is read from outside. */

export const nginxCommand = process.env['NGINX_BIN'] ?? 'nginx'
export const haproxyCommand = process.env['HAPROXY_BIN'] ?? 'haproxy'

/** Whether there is an nginx to compare with: `apt-get install nginx-light`, say. */
export const nginxInstalled = (): boolean => spawnSync(nginxCommand, ['-v']).status === 0
export const haproxyInstalled = (): boolean => spawnSync(haproxyCommand, ['-v']).status === 0

export type Place = { folder: string; port: number }

/**
 * Runs a proxy from a configuration file. `files` are written into its folder, which is removed when it has stopped;
 * `command` says how it is started in the foreground.
 */
export const startInstalled = async (options: {
  files: (place: Place) => Record<string, string>
  command: (place: Place) => { name: string; args: readonly string[] }
}): Promise<Listening> => {
  const place = { folder: await mkdtemp(join(tmpdir(), 'surrogate-bench-')), port: await freePort() }
  for (const [name, text] of Object.entries(options.files(place))) await writeFile(join(place.folder, name), text)
  const { name, args } = options.command(place)
  const child = spawn(name, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  await answers(place.port, child, name)
  return {
    port: place.port,
    cpu: () => cpuMicros(child.pid!),
    stop: async () => {
      child.kill()
      await gone
      await rm(place.folder, { recursive: true })
    },
  }
}

const answers = async (port: number, child: ChildProcess, name: string): Promise<void> => {
  for (let attempt = 0; attempt < 200 && child.exitCode === null; attempt++) {
    const connected = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (connected) return
    await delay(25)
  }
  throw new Error(`${name} does not answer`)
}

/**
 * proc(5): utime and stime of all threads are the 14th and 15th field, in ticks of 10 ms; the name before them may hold
 * spaces.
 */
export const cpuMicros = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

/** What is resident, in bytes: the second field of proc(5) `statm`, in pages of 4 kB. */
export const residentBytes = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * 4_096

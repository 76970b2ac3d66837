import { fileURLToPath } from 'node:url'
import type { PostgresConnection } from './database.ts'
import { freePort } from './free-port.ts'
import { startProcess, type TestProcess } from './process.ts'

const surrogate = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))

export const testKey = Buffer.alloc(32, 1).toString('base64')
export const testClient = { id: 'test-client', secret: 'a-secret-that-is-long-enough-for-tests' }

export const databaseUrl = ({ host, port, user, password, database }: PostgresConnection): string => {
  const credentials = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`
  return `postgres://${credentials}@localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`
}

export interface SurrogateProcess extends TestProcess {
  /** Of the listener for operators. */
  adminUrl: string
  /** What `/readyz` answers. */
  readiness(): Promise<{
    status: number
    body: { ok: boolean; checks: Record<string, { ok: boolean; detail?: string }> }
  }>
}

/** A command of the real command line, on this database. Webhooks may go to loopback. Logs JSON lines. */
export const startSurrogateProcess = async (
  command: 'issuer' | 'relay',
  connection: PostgresConnection,
  env: Record<string, string> = {},
): Promise<SurrogateProcess> => {
  const adminPort = await freePort()
  const child = startProcess(process.execPath, [surrogate, command], {
    cwd: process.cwd(),
    env: {
      DATABASE_URL: databaseUrl(connection),
      KEY_ENCRYPTION_KEY: testKey,
      BOOTSTRAP_CLIENT_ID: testClient.id,
      BOOTSTRAP_CLIENT_SECRET: testClient.secret,
      WEBHOOK_ALLOW_HTTP: 'true',
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      PORT: '0',
      ADMIN_PORT: String(adminPort),
      ...env,
    },
  })
  const adminUrl = `http://127.0.0.1:${adminPort}`
  return {
    ...child,
    adminUrl,
    async readiness() {
      const answer = await fetch(`${adminUrl}/readyz`)
      return { status: answer.status, body: (await answer.json()) as never }
    },
  }
}

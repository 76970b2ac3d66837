import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { shippedPolicies } from '../../policies/decide.ts'
import { createTestDatabase } from '../support/database.ts'
import { startProcess } from '../support/process.ts'

const surrogate = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))

/** `surrogate issuer` with a policy folder of its own: the shipped impersonation policy, or these files. */
const startIssuer = async (files?: Record<string, string>) => {
  const { connection, close } = await createTestDatabase()
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-reload-'))
  const policies = join(folder, 'policies')
  await mkdir(policies)
  if (!files) await cp(join(shippedPolicies, 'impersonation.rego'), join(policies, 'impersonation.rego'))
  for (const [name, content] of Object.entries(files ?? {})) await writeFile(join(policies, name), content)
  const { host, port, user, password, database } = connection
  const credentials = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`
  const child = startProcess(process.execPath, [surrogate, 'issuer'], {
    cwd: folder,
    env: {
      DATABASE_URL: `postgres://${credentials}@localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`,
      KEY_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
      POLICY_PATH: policies,
      PORT: '0',
      ADMIN_PORT: '0',
    },
  })
  onTestFinished(async () => {
    child.signalGroup('SIGKILL')
    await child.exited
    await rm(folder, { recursive: true })
    await close()
  })
  return { child, policies }
}

test('SIGHUP reloads the impersonation policy, changed or not, and a broken one leaves the last good one', async () => {
  const { child, policies } = await startIssuer()
  await child.waitFor(/issuer ready/)
  expect(child.output()).not.toContain('policies reloaded')
  child.signal('SIGHUP')
  await child.waitFor(/policies reloaded/)

  await writeFile(join(policies, 'broken.rego'), 'package surrogate.impersonation\n\ndeny contains nonsense\n')
  child.signal('SIGHUP')
  await child.waitFor(/policies not reloaded; the last good ones keep running/)
  child.signal('SIGTERM')
  expect(await child.exited).toEqual({ code: 0, signal: null })
})

test('policies that decide nothing about impersonation are refused at the start, not at the first request', async () => {
  const { child } = await startIssuer({ 'a.rego': 'package a\n\n# METADATA\n# entrypoint: true\ndecision := true\n' })
  expect(await child.exited).toEqual({ code: 2, signal: null })
  expect(child.output()).toContain('lack the entrypoint surrogate/impersonation/decision')
})

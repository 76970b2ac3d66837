import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test, vi } from 'vitest'
import { sayFirstOwner } from '../../bin/parts/issuer.ts'
import { createDatabase } from '../../platform/database/database.ts'
import { silentLogger } from '../../platform/logger.ts'
import { createBrowser } from '../support/browser.ts'
import { createTestDatabase } from '../support/database.ts'
import { startProcess } from '../support/process.ts'
import { databaseUrl, startSurrogateProcess, testKey } from '../support/surrogate-process.ts'

const surrogate = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))

const run = async (args: readonly string[], env: Record<string, string>) => {
  const child = startProcess(process.execPath, [surrogate, ...args], { cwd: process.cwd(), env })
  return { ...(await child.exited), output: child.output() }
}

const link = /(http:\/\/localhost:\d+)\/console\/setup#([\w-]{43})\n/
const ada = { name: 'Ada', primaryEmail: 'ada@owner.test', password: 'a violet staircase 7' }

const use = async (origin: string, token: string) => {
  const browser = createBrowser(origin)
  const answer = await browser.send(`${origin}/console/setup`, {
    method: 'POST',
    headers: { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' },
    body: JSON.stringify({ token, ...ada }),
  })
  return answer.status
}

test('every start prints a link while there is no owner, and none from then on; invitations go on', async () => {
  const home = await createTestDatabase()
  onTestFinished(home.close)
  const started = async () => {
    const issuer = await startSurrogateProcess('issuer', home.connection)
    onTestFinished(async () => {
      issuer.signal('SIGTERM')
      await issuer.exited
    })
    return issuer
  }
  const first = await started()
  const [, origin = '', token = ''] = await first.waitFor(link)
  expect(first.output()).toContain('This link makes one, once, within 30 minutes:')
  const second = await started()
  expect((await second.waitFor(link))[2]).not.toBe(token)
  expect(await use(origin, token)).toBe(201)

  const third = await started()
  await third.waitFor(/"msg":"issuer ready"/)
  third.signal('SIGTERM')
  await third.exited
  expect(third.output()).not.toContain('/console/setup#')

  const env = { DATABASE_URL: databaseUrl(home.connection), KEY_ENCRYPTION_KEY: testKey, BASE_URL: origin }
  const invited = await run(['console', 'invite', '--role', 'owner'], env)
  expect(invited).toMatchObject({ code: 0, output: expect.stringMatching(link) })
  expect(invited.output).toContain('It can be used once, within 30 minutes.')
  const [, , other = ''] = link.exec(invited.output)!
  const check = await fetch(`${origin}/console/setup/check`, {
    method: 'POST',
    headers: { origin, 'content-type': 'application/json' },
    body: JSON.stringify({ token: other }),
  })
  expect(await check.json()).toMatchObject({ role: 'owner' })
})

test.for([
  [['console'], 'A subcommand of surrogate console is missing.'],
  [['console', 'open'], 'surrogate console has no "open".'],
  [['console', 'invite'], '--role is missing.'],
  [['console', 'invite', '--role', 'king'], 'There is no role "king".'],
] as const)('%j is a mistake that is said in a line', async ([args, message]) => {
  const { code, output } = await run(args, { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' })
  expect([code, output]).toEqual([2, expect.stringContaining(message)])
})

test('an issuer whose database is away when the link is due says how to get one, and goes on; other faults are told', async () => {
  const home = await createTestDatabase()
  onTestFinished(home.close)
  const away = createDatabase({ connection: { ...home.connection, host: '127.0.0.1', port: 1 }, logger: silentLogger })
  onTestFinished(away.close)
  const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  onTestFinished(() => said.mockRestore())
  await sayFirstOwner(away, 'https://id.example.test')
  expect(said.mock.calls.flat().join('')).toContain('surrogate console invite --role owner')

  await home.database.knex.raw('ALTER TABLE console_invitations RENAME TO somewhere_else')
  await expect(sayFirstOwner(home.database, 'https://id.example.test')).rejects.toThrow('console_invitations')
})

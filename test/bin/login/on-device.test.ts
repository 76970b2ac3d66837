import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CodeFlow, createCodeFlow, type Person } from '../../support/code-flow.ts'
import { createDeviceFlow, type DeviceFlow } from '../../support/device-flow.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import { runProcess, startProcess } from '../../support/process.ts'

/** `surrogate login`, `token` and `logout`, as somebody at a terminal uses them. */

const surrogate = fileURLToPath(new URL('../../../bin/surrogate.ts', import.meta.url))

let issuer: TestIssuer
let flow: CodeFlow
let device: DeviceFlow
let person: Person
let folder: string
let client: { id: string }
beforeAll(async () => {
  issuer = await startTestIssuer()
  flow = createCodeFlow(issuer)
  device = createDeviceFlow(issuer, flow)
  client = await device.createClient()
  person = await flow.createPerson()
  folder = await mkdtemp(join(tmpdir(), 'surrogate-login-'))
})
afterAll(async () => {
  await issuer.close()
  await rm(folder, { recursive: true, force: true })
})

const environment = () => ({ cwd: folder, env: { XDG_CONFIG_HOME: folder } })
const command = (...args: string[]) => runProcess(process.execPath, [surrogate, ...args], environment())
const kept = () => join(folder, 'surrogate', 'logins.json')

/** From the code in the terminal to the decision in a browser. */
const login = async (decision: 'allow' | 'deny', ...args: string[]) => {
  const all = ['login', '--issuer', issuer.issuer, '--client', client.id, ...args]
  const running = startProcess(process.execPath, [surrogate, ...all], environment())
  const [, code] = await running.waitFor(/enter the code:\s+([A-Z]{4}-[A-Z]{4})/)
  const browser = flow.browser()
  await device.decide(browser, await device.toConfirmation(browser, code!, person), decision)
  const { code: exitCode } = await running.exited
  return { code: exitCode, output: running.output() }
}

test('somebody signs in, has tokens for as long as that holds, and signs out', async () => {
  const resource = await issuer.createResource({ scopes: ['read:orders'] })
  await issuer.grantUser(person.id, resource, ['read:orders'])
  const { code, output } = await login('allow', '--resource', resource, '--scope', 'openid offline_access read:orders')
  expect(output).toContain(`Open ${issuer.baseUrl}/device in a browser`)
  expect(output).toContain(`Signed in at ${issuer.issuer} as ${person.id}.`)
  expect(code).toBe(0)
  expect((await stat(kept())).mode & 0o777).toBe(0o600)
  expect((await stat(join(folder, 'surrogate'))).mode & 0o777).toBe(0o700)
  const stored = await readFile(kept(), 'utf8')
  const { refreshToken } = JSON.parse(stored).logins[0]
  expect(output).not.toContain(refreshToken)

  const first = await command('token')
  expect(await issuer.verify(first.output.trim(), resource)).toMatchObject({ sub: person.id, scope: 'read:orders' })
  expect((await command('token')).output).toBe(first.output)
  // It has a minute left.
  await changeStored((text) => text.replace(/"expiresAt": \d+/, `"expiresAt": ${Date.now() + 50_000}`))
  const second = await command('token')
  expect(decodeJwt(second.output.trim())).toMatchObject({ sid: decodeJwt(first.output.trim())['sid'] })
  expect(second.output).not.toBe(first.output)
  const changed = await command('token', '--resource', 'https://nothing.example.test')
  expect(changed).toMatchObject({ code: 1, output: expect.stringContaining('invalid_target') })

  expect(await command('logout')).toEqual({ code: 0, output: `Signed out of ${issuer.issuer}.\n` })
  expect(JSON.parse(await readFile(kept(), 'utf8'))).toEqual({ logins: [] })
  const [ended] = await issuer.sql('SELECT ended_at IS NOT NULL AS ended FROM authorizations WHERE client_id = $1', [
    client.id,
  ])
  expect(ended).toEqual({ ended: true })
  expect(await command('token')).toMatchObject({ code: 2, output: expect.stringContaining('Nobody is signed in.') })
})

const changeStored = async (change: (text: string) => string) => {
  await writeFile(kept(), change(await readFile(kept(), 'utf8')))
}

test('a refusal in the browser is told in the terminal, and nothing is kept', async () => {
  const { code, output } = await login('deny', '--json')
  expect(code).toBe(1)
  expect(output).toContain('"problem":"The issuer answered 400. access_denied')
  expect(await command('token')).toMatchObject({ code: 2 })
})

test('what cannot be is said before anybody is asked', async () => {
  const shop = await flow.createClient()
  const at = ['--issuer', issuer.issuer]
  expect(await command('login', ...at, '--client', shop.id)).toMatchObject({
    code: 1,
    output: expect.stringContaining('unauthorized_client'),
  })
  expect(await command('login', ...at)).toMatchObject({
    code: 2,
    output: expect.stringContaining('--client is missing'),
  })
  expect(await command('login', ...at, '--client', client.id, '--acr', 'x')).toMatchObject({
    code: 2,
    output: expect.stringContaining('--acr needs --user'),
  })
  expect(await command('logout')).toMatchObject({ code: 2 })
})

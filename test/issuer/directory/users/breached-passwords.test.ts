import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { AuditEntry } from '../../../../issuer/base/audit/log-store.ts'
import { signInExperience } from '../../../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import { openBreachedPasswords } from '../../../../issuer/directory/users/password-policy/breached/open-breached-passwords.ts'
import { createPasswordRules } from '../../../../issuer/directory/users/password-policy/password-rules.ts'

const surrogate = fileURLToPath(new URL('../../../../bin/surrogate.ts', import.meta.url))
const run = promisify(execFile)

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'surrogate-breached-'))
})
afterAll(() => rm(folder, { recursive: true }))

const hex = (text: string) => createHash('sha1').update(text).digest('hex').toUpperCase()
const buildFilter = async (name: string, lines: readonly string[], ...options: string[]) => {
  const [list, out] = [join(folder, `${name}.txt`), join(folder, `${name}.filter`)]
  await writeFile(list, lines.join('\n'))
  const { stdout } = await run(process.execPath, [
    surrogate,
    'passwords',
    'build-filter',
    list,
    '--out',
    out,
    ...options,
  ])
  return { out, stdout }
}

const recorded = () => {
  const entries: AuditEntry[] = []
  return { entries, audit: { record: (entry: AuditEntry) => void entries.push(entry) } }
}

const open = async (options: Parameters<typeof openBreachedPasswords>[0], { audit } = recorded()) => {
  const breached = await openBreachedPasswords(options, { audit })
  onTestFinished(() => breached.close())
  return breached
}

const serve = async (answer: RequestListener): Promise<string> => {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/range`
}

test('a file made of digests or of passwords knows all of them, and hardly any other', async () => {
  const known = Array.from({ length: 5_000 }, (_, index) => `breached ${index}`)
  const lines = known.map((password, index) => {
    if (index % 3 === 0) return password
    return index % 3 === 1 ? `${hex(password)}:${index}` : hex(password).toLowerCase()
  })
  const { out, stdout } = await buildFilter('list', [...lines, ''], '--false-positives', '0.001')
  expect(stdout).toMatch(/: 5000 passwords, \d+ bytes\n$/)
  const breached = await open({ file: out })
  const found = await Promise.all(known.map((password) => breached.has(password)))
  expect(found.every((is) => is)).toBe(true)
  const others = await Promise.all(Array.from({ length: 10_000 }, (_, index) => breached.has(`another ${index}`)))
  // Ten are to be expected; the digests are the same every time.
  expect(others.filter((is) => is).length).toBeLessThan(25)
  // 14.4 bits each.
  expect((await readFile(out)).length).toBeLessThan(9_100)
})

test('a password that is typed in another composition of letters is known too', async () => {
  const { out } = await buildFilter('composed', [hex('crème brûlée'.normalize('NFC')), 'caf\u0065\u0301 au lait'])
  const breached = await open({ file: out })
  expect(await breached.has('crème brûlée'.normalize('NFD'))).toBe(true)
  expect(await breached.has('café au lait'.normalize('NFC'))).toBe(true)
})

test('anything that is no whole filter keeps the issuer from starting', async () => {
  const { out } = await buildFilter('whole', ['one', 'two'])
  await truncate(out, 36)
  await writeFile(join(folder, 'text'), 'password\n'.repeat(100))
  for (const file of [out, join(folder, 'text'), join(folder, 'missing'), folder]) {
    await expect(open({ file })).rejects.toMatchObject({ name: 'StartupError', exitCode: 2 })
  }
})

test('the command says what is wrong, and leaves nothing unfinished behind', async () => {
  const fails = (...args: string[]) =>
    run(process.execPath, [surrogate, 'passwords', ...args]).then(
      () => 0,
      ({ code, stderr }: { code: number; stderr: string }) => [code, stderr.split('\n')[0]],
    )
  const out = join(folder, 'never')
  expect(await fails()).toEqual([2, 'A subcommand of surrogate passwords is missing.'])
  expect(await fails('build-filter', 'list.txt')).toEqual([2, 'build-filter needs one list, and --out.'])
  expect(await fails('build-filter', 'x', '--out', out, '--false-positives', '1')).toEqual([
    2,
    '--false-positives is out of bounds.',
  ])
  const missing = join(folder, 'no such list')
  expect(await fails('build-filter', missing, '--out', out)).toEqual([2, `The filter could not be made of ${missing}.`])
  expect((await readdir(folder)).filter((name) => name.startsWith('never'))).toEqual([])
})

test('a service is told five digits of the digest, asks for padding, and does not count padding as a breach', async () => {
  const asked: { url: string | undefined; padding: string | string[] | undefined }[] = []
  const url = await serve((request, response) => {
    asked.push({ url: request.url, padding: request.headers['add-padding'] })
    const suffixes = [`${hex('breached').slice(5)}:42`, `${hex('padded').slice(5)}:0`, `${'0'.repeat(35)}:1`]
    response.end(suffixes.join('\r\n'))
  })
  const breached = await open({ url })
  expect(await breached.has('breached')).toBe(true)
  expect(await breached.has('padded')).toBe(false)
  expect(await breached.has('neither')).toBe(false)
  expect(asked.map(({ url }) => url)).toEqual(
    ['breached', 'padded', 'neither'].map((password) => `/range/${hex(password).slice(0, 5)}`),
  )
  expect(asked.every(({ padding }) => padding === 'true')).toBe(true)
})

test.each<[string, RequestListener]>([
  ['does not answer', () => {}],
  ['stops in the middle', (_, response) => void response.write('0')],
  ['breaks off', (_, response) => void response.socket?.destroy()],
  ['answers an error', (_, response) => void response.writeHead(500).end(`${hex('breached').slice(5)}:42`)],
  [
    'answers without end',
    (_, response) => {
      const more = () => {
        while (response.write('0'.repeat(65_536)));
        response.once('drain', more)
      }
      more()
    },
  ],
])('a service that %s keeps nobody from registering, and the audit says so', async (_, answer) => {
  const audited = recorded()
  const breached = await open({ url: await serve(answer) }, audited)
  expect(await breached.has('breached')).toBe(false)
  expect(audited.entries).toEqual([
    { key: 'Password.BreachCheck', result: 'Error', payload: { source: 'service', error: expect.any(String) } },
  ])
  expect(JSON.stringify(audited.entries)).not.toContain(hex('breached').slice(0, 5))
})

test('people hear of every reason at once; lists are asked only about what is good otherwise, and only where they count', async () => {
  const experience = signInExperience.schema.parse({})
  let asked = 0
  const url = await serve((_, response) => {
    asked++
    response.end(`${hex('breached already').slice(5)}:1`)
  })
  const breached = await open({ url })
  const rules = createPasswordRules({ experience: () => experience, breached })
  await expect(rules.require('breached already', {})).rejects.toMatchObject({
    status: 422,
    code: 'password.rejected',
    data: [{ code: 'password_rejected.pwned' }],
  })
  await expect(rules.require('1234', {})).rejects.toMatchObject({
    data: [
      { code: 'password_rejected.too_short', interpolation: { min: 8 } },
      { code: 'password_rejected.restricted.sequence' },
    ],
  })
  await rules.require('analytical engine', {})
  expect(asked).toBe(2)
  experience.passwordPolicy.rejects.pwned = false
  await rules.require('breached already', {})
  experience.passwordPolicy.preset = 'nist'
  await expect(rules.require('14 characters.', {})).rejects.toMatchObject({ code: 'password.rejected' })
  experience.mfa = { factors: ['Totp'], policy: 'Mandatory' }
  await rules.require('14 characters.', {})
  expect(asked).toBe(2)
})

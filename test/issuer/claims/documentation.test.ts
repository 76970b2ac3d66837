import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { reservedClaims } from '../../../issuer/claims/claims-result.ts'
import { type ClaimsSandbox, createClaimsSandbox, defaultLimits } from '../../../issuer/claims/sandbox/sandbox.ts'

/** The examples of `docs/custom-claims.md` do what the page says, and fit the published types. */

const root = fileURLToPath(new URL('../../..', import.meta.url))
const page = await readFile(join(root, 'docs/custom-claims.md'), 'utf8')
const examples = Object.fromEntries(
  [...page.matchAll(/<!-- example: (\w+) -->\n```js\n([\s\S]*?)```/g)].map(([, name, code]) => [name!, code!]),
)

let sandbox: ClaimsSandbox
beforeAll(async () => {
  sandbox = createClaimsSandbox()
  await sandbox.start()
})
afterAll(() => sandbox?.close())

const run = async (name: string, parts: { user?: object; context?: object; environment?: Record<string, string> }) => {
  const user = { id: 'alice', customData: {}, roles: [], ...parts.user }
  const grant = { type: 'urn:ietf:params:oauth:grant-type:token-exchange', subjectTokenContext: parts.context ?? {} }
  const input = JSON.stringify({ token: { clientId: 'help-desk' }, context: { user, grant } })
  const call = { script: examples[name]!, input, environmentVariables: parts.environment ?? {}, owner: 'somebody' }
  const { outcome } = await sandbox.run(call)
  return 'returned' in outcome ? JSON.parse(outcome.returned!) : outcome
}

/** What the compiler says of scripts, each checked by itself. */
const typeErrors = async (scripts: Readonly<Record<string, string>>): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-claims-'))
  try {
    const types = join(root, 'issuer/claims/custom-claims.ts')
    const files = await Promise.all(
      Object.entries(scripts).map(async ([name, code]) => {
        const file = join(folder, `${name}.mjs`)
        // A module, so that functions of one name stay apart.
        await writeFile(file, `${code.replaceAll('surrogate/custom-claims', types)}\nexport {}\n`)
        return file
      }),
    )
    const compiler = join(createRequire(import.meta.url).resolve('typescript/package.json'), '../bin/tsc')
    const flags = ['--ignoreConfig', '--noEmit', '--allowJs', '--checkJs', '--strict', '--target', 'es2023']
    const more = ['--lib', 'es2023', '--module', 'nodenext', '--allowImportingTsExtensions', '--types', '']
    const checked = await promisify(execFile)(process.execPath, [compiler, ...flags, ...more, ...files]).catch(
      (error: { stdout: string }) => error,
    )
    return checked.stdout
  } finally {
    await rm(folder, { recursive: true })
  }
}

test('there are three, and they fit the types that editors get', { timeout: 60_000 }, async () => {
  expect(Object.keys(examples)).toEqual(['ticket', 'roles', 'rule'])
  expect(await typeErrors(examples)).toBe('')
  const mistaken = examples['roles']!.replace('context.user.roles', 'context.user.rolls')
  expect(await typeErrors({ mistaken })).toMatch(/'rolls' does not exist/)
})

test('the ticket of the subject token becomes a claim', async () => {
  expect(await run('ticket', { context: { ticketId: 'T-1' } })).toEqual({ ticket_id: 'T-1' })
  expect(await run('ticket', {})).toEqual({})
})

test('roles become the claims of a database engine', async () => {
  const user = { roles: [{ name: 'Reader' }, { name: 'Admin' }] }
  const claims = (role: string) => ({
    'https://database.example/claims': {
      'x-user-id': 'alice',
      'x-allowed-roles': ['reader', 'admin'],
      'x-default-role': role,
    },
  })
  expect(await run('roles', { user, environment: { DEFAULT_ROLE: 'admin' } })).toEqual(claims('admin'))
  expect(await run('roles', { user, environment: { DEFAULT_ROLE: 'owner' } })).toEqual(claims('reader'))
  expect(await run('roles', {})).toEqual({})
})

test('the rule denies what it says', async () => {
  const user = { customData: { legalHold: true } }
  expect(await run('rule', {})).toEqual({})
  expect(
    await run('rule', { user, environment: { HELP_DESK_CLIENT: 'help-desk' }, context: { caseNumber: '7' } }),
  ).toEqual({
    denied: 'This account is under legal hold.',
  })
  expect(await run('rule', { user })).toEqual({ denied: 'An account under legal hold needs a case number.' })
  expect(await run('rule', { user, context: { caseNumber: '7' } })).toEqual({ legal_case: '7' })
})

test('the page names every reserved claim, and the limits that hold', () => {
  for (const name of reservedClaims) expect(page).toContain(`\`${name}\``)
  expect(page).toContain(`| Processor time | ${defaultLimits.cpuMs} ms |`)
  expect(page).toContain(
    `| Memory, stack | ${defaultLimits.heapBytes >> 20} MB, ${defaultLimits.stackBytes >> 10} kB |`,
  )
})

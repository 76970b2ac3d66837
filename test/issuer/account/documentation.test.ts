import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { accountRoutes } from '../../../issuer/account/api/index.ts'
import { accountFields } from '../../../issuer/account/settings.ts'
import { allScopes, startAccount, type TestAccount } from '../../support/account.ts'

/** `docs/account-api.md`: its lines do what it says, and it names the calls and the fields that there are. */

const page = readFileSync(new URL('../../../docs/account-api.md', import.meta.url), 'utf8')

let account: TestAccount

beforeAll(async () => {
  account = await startAccount()
})
afterAll(() => account.close())

test('the shell lines change an account', async () => {
  const person = await account.createPerson()
  const { token } = await account.signIn(person, { scope: allScopes })
  const [, lines] = /```sh\n([\s\S]*?)```/.exec(page)!
  const script = lines!.replaceAll('http://localhost:3001', account.experience.issuer.baseUrl)
  const env = { ...process.env, TOKEN: token, PASSWORD: person.password }
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env })
  expect(stdout.trim().split('\n')).toEqual([person.username, 'Ada Lovelace', 'countess'])
})

test('every call and every field is named', () => {
  const named = page.replaceAll(
    '`…/primary-phone`',
    '`POST /my-account/primary-phone` `DELETE /my-account/primary-phone`',
  )
  for (const { method, path } of accountRoutes({} as never)) {
    const written = `\`${method} ${path.replace(/:\w+/, ':id')}\``
    expect(named, written).toContain(written)
  }
  const table = page.slice(page.indexOf('| Field |'))
  for (const field of accountFields) expect(table).toContain(`\`${field}\``)
})

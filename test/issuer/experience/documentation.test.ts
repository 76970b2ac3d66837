import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { experienceRoutes } from '../../../issuer/sign-in/experience/index.ts'
import { callback } from '../../support/code-flow.ts'
import { startExperience, type TestExperience } from '../../support/experience.ts'

/** `docs/own-sign-in-pages.md`: its lines do what it says, and its table names the calls that there are. */

const page = readFileSync(new URL('../../../docs/own-sign-in-pages.md', import.meta.url), 'utf8')

let experience: TestExperience
let folder: string

beforeAll(async () => {
  experience = await startExperience()
  folder = await mkdtemp(join(tmpdir(), 'own-pages-'))
})
afterAll(async () => {
  await experience.close()
  await rm(folder, { recursive: true })
})

test('the shell lines sign a person in', async () => {
  const person = await experience.createPerson()
  const lines = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block).join('\n')
  const script = lines.replaceAll('http://localhost:3001', experience.issuer.baseUrl)
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: folder,
    env: {
      ...process.env,
      CLIENT: experience.client.id,
      CALLBACK: callback,
      PERSON: person.username,
      PASSWORD: person.password,
      INTERACTION: '',
    },
  })
  expect(stdout.trim().split('\n')).toEqual(['done', 'Bearer'])
})

test('every call is in the table', () => {
  const told = experienceRoutes.filter(
    ({ method, path }) => !page.includes(`\`${method} ${path === '' ? '/' : path}`) && !page.includes(`\`${path}\``),
  )
  // The verification that ends with `/verify` stands in the row of what it verifies; the last two put off what we do
  // not suggest, or are another name.
  expect(told.map(({ path }) => path)).toEqual([
    '/verification/mfa-verification-code/verify',
    '/verification/web-authn/registration/verify',
    '/verification/web-authn/authentication/verify',
    '/profile/mfa/mfa-enabled',
    '/profile/mfa/mfa-suggestion-skipped',
  ])
})

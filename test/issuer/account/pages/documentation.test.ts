import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { pages } from '../../../../issuer/account/pages/pages.ts'
import { accountFields } from '../../../../issuer/account/settings.ts'
import { startTestIssuer } from '../../../support/issuer.ts'

/** `docs/account-pages.md`: it names the pages and the fields that there are, and its line does what it says. */

const text = readFileSync(new URL('../../../../docs/account-pages.md', import.meta.url), 'utf8')

test('every page stands in the table, and every field that has one', () => {
  const table = text.slice(text.indexOf('| Address |'), text.indexOf('## Getting there'))
  for (const { path } of pages) expect(table).toContain(`\`${path}\``)
  for (const field of accountFields.filter((name) => name !== 'customData')) expect(table).toContain(`\`${field}\``)
})

test('the line that switches fields', async () => {
  const issuer = await startTestIssuer()
  onTestFinished(() => issuer.close())
  const [, line] = /```sh\n([\s\S]*?)```/.exec(text)!
  const env = { ...process.env, MANAGEMENT_TOKEN: await issuer.managementToken() }
  const script = line!.replaceAll('http://localhost:3001', issuer.baseUrl)
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env })
  expect(JSON.parse(stdout)).toMatchObject({ enabled: true, fields: { username: 'ReadOnly', deletion: 'Off' } })
})

import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { managementScopes } from '../../../../issuer/base/authorization.ts'
import { refusals as signInRefusals } from '../../../../issuer/protocol/grants/authorization/refusal.ts'
import { refusals } from '../../../../issuer/protocol/grants/token-exchange/refusal.ts'

const page = await readFile(new URL('../../../../docs/integrators.md', import.meta.url), 'utf8')

/** The first column of the table whose head begins with this cell. */
const firstColumn = (head: string): string[] => {
  const lines = page.split('\n')
  const start = lines.findIndex((line) => line.startsWith(`| ${head} |`))
  const length = lines.slice(start).findIndex((line) => !line.startsWith('|'))
  return lines.slice(start + 2, start + length).map((line) => line.split('|')[1]!.trim().replaceAll('`', ''))
}

test('every reason of a refused exchange is on the integrators’ page, and no other', () => {
  expect(firstColumn('`reason`')).toEqual(Object.keys(refusals))
})

test('every reason of a refused code or refresh token is there, and no other', () => {
  expect(firstColumn('`reason` after signing in')).toEqual(Object.keys(signInRefusals))
})

test('every permission of the Management API is on the integrators’ page', () => {
  for (const name of Object.keys(managementScopes)) expect(page).toContain(`\`${name}\``)
})

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { problems as ofGateway } from '../../../gateway/refusals/problems.ts'
import { oauthErrors, problems as ofIssuer } from '../../../issuer/base/errors/problems.ts'

/** `docs/errors.md` and the problem tables of the parts name the same codes with the same statuses. */

const document = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8')

const oauthHeading = '## Token endpoint and its neighbours'
const sections = document.split(/^(?=## )/m)
const ofOauth = sections.filter((section) => section.startsWith(oauthHeading)).join('')
const ofProblems = sections.filter((section) => !section.startsWith(oauthHeading)).join('')

const rowsOf = (text: string) =>
  [...text.matchAll(/^\| `([^`]+)` \| (\d{3}) \| (.+) \|$/gm)].map(([, code, status]) => `${code} ${status}`).sort()

test('the problem tables are documented, whole and exactly', () => {
  const codes = Object.entries({ ...ofIssuer, ...ofGateway }).map(([code, [status]]) => `${code} ${status}`)
  expect(rowsOf(ofProblems)).toEqual(codes.sort())
})

test('the OAuth errors are documented, whole and exactly', () => {
  const codes = Object.entries(oauthErrors).map(([code, status]) => `${code} ${status}`)
  expect(rowsOf(ofOauth)).toEqual(codes.sort())
})

import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { backChannelLogout } from './back-channel-logout.ts'
import { basicOp } from './basic-op.ts'
import { configOp } from './config-op.ts'
import { requests } from './fapi2/requests.ts'
import { tokens } from './fapi2/tokens.ts'
import { rpInitiatedLogout } from './rp-initiated-logout.ts'

const page = await readFile(new URL('../../../docs/conformance.md', import.meta.url), 'utf8')

/** The cells of the table whose head begins with this one. */
const tableOf = (head: string): string[][] => {
  const lines = page.split('\n')
  const start = lines.findIndex((line) => line.startsWith(`| ${head} |`))
  const length = lines.slice(start).findIndex((line) => !line.startsWith('|'))
  const cellsOf = (line: string) => line.split('|').slice(1, -1)
  return lines
    .slice(start + 2, start + length)
    .map((line) => cellsOf(line).map((cell) => cell.trim().replaceAll('`', '')))
}

const plans = {
  'Basic OP': basicOp,
  'Config OP': configOp,
  'RP-Initiated Logout OP': rpInitiatedLogout,
  'Back-Channel Logout OP': backChannelLogout,
}
const fapi2 = Object.entries({ ...requests, ...tokens })
const inapplicable = fapi2.flatMap(([name, module]) =>
  'doesNotApply' in module ? [[`fapi2-security-profile-final-${name}`, module.doesNotApply]] : [],
)

test('the page says how many modules of each plan there are, and how many are met', () => {
  const rows = Object.entries(plans).map(([plan, modules]) => {
    const all = Object.values(modules)
    const short = all.filter(({ differs }) => differs?.ours !== undefined).length
    return [plan, all.length, all.length - short, short, 0].map(String)
  })
  const passing = fapi2.length - inapplicable.length
  const ofFapi = ['FAPI 2.0 Security Profile', fapi2.length, passing, 0, inapplicable.length].map(String)
  expect(tableOf('Plan')).toEqual([...rows, ofFapi])
})

test('the page says which requirements are not met, which modules do not apply, and why', () => {
  const short = Object.values(plans).flatMap((modules) =>
    Object.entries(modules).flatMap(([name, { differs }]) =>
      Object.entries(differs?.ours ?? {}).map(([requirement, why]) => [name, requirement, why]),
    ),
  )
  expect(tableOf('Module')).toEqual([...short, ...inapplicable.map(([name, why]) => [name, 'all of it', why])])
})

test('the page has every module of the FAPI 2.0 plan, with what it proves', () => {
  const rows = fapi2.flatMap(([name, module]) => ('proves' in module ? [[name, module.proves]] : []))
  expect(tableOf('Module of FAPI 2.0')).toEqual(rows)
})

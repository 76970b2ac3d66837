import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { explainCommand } from '../../../bin/login/explain.ts'
import { shippedPolicies } from '../../../policies/decide.ts'
import { signInInputSchema } from '../../../policies/sign-in.ts'
import { ruleFolder } from '../../policies/rule-folder.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import { runProcess } from '../../support/process.ts'
import { databaseUrl } from '../../support/surrogate-process.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** `surrogate login explain` on the database of an issuer: as an operator calls it, and mostly without its process. */
describe('surrogate login explain', { timeout: 60_000 }, () => {
  let database: TestDatabase
  let issuer: TestIssuer
  let ada: string
  let client: string
  beforeAll(async () => {
    database = await createTestDatabase()
    issuer = await startTestIssuer({ test: database })
    const person = { username: 'ada', primaryEmail: 'ada@example.test', password: 'a good password' }
    ada = (await issuer.api('POST', '/users', person)).body.id
    const role = (await issuer.api('POST', '/roles', { name: 'admin', description: 'May do all.' })).body.id
    await issuer.api('POST', `/users/${ada}/roles`, { roleIds: [role] })
    client = (
      await issuer.api('POST', '/applications', {
        name: 'Shop',
        type: 'SPA',
        oidcClientMetadata: { redirectUris: ['https://shop.example.test/'], postLogoutRedirectUris: [] },
      })
    ).body.id
  })
  afterAll(() => issuer?.close())

  const environment = () => ({ DATABASE_URL: databaseUrl(database.connection) })
  const called = (...args: string[]) => {
    const command = ['bin/surrogate.ts', 'login', 'explain', ...args]
    return runProcess(process.execPath, command, { cwd: root, env: environment() })
  }
  const run = async (args: string[], env: Record<string, string> = {}) => {
    const lines: string[] = []
    const say = (line: string) => void lines.push(`${line}\n`)
    const code = await explainCommand(args, { env: { ...environment(), LOG_LEVEL: 'silent', ...env }, say })
    return { code, output: lines.join('') }
  }
  const about = () => ['--user', 'ada', '--client', client]
  const explain = (...args: string[]) => run([...about(), ...args])

  const setting = async (patch: object) => {
    expect((await issuer.api('PATCH', '/sign-in-exp', patch)).status).toBe(200)
  }
  const sample = (name: string) => readFile(join(shippedPolicies, 'examples/signin', `${name}.rego`), 'utf8')
  const folderWith = async (...names: string[]) =>
    ruleFolder({
      'signin.rego': await readFile(join(shippedPolicies, 'signin.rego'), 'utf8'),
      ...Object.fromEntries(await Promise.all(names.map(async (name) => [`${name}.rego`, await sample(name)]))),
    })

  test('the shipped rules let somebody with a password in, by no rule', async () => {
    const { code, output } = await called(...about(), '--amr', 'pwd')
    expect(output.trimEnd().split('\n')).toEqual([
      `person    ${ada} (ada), roles: admin`,
      `client    ${client} (Shop), SPA`,
      expect.stringMatching(/^rules {5}those that come with Surrogate, revision \w+$/),
      '',
      'stage     mfa',
      'decision  allowed',
      'requires  none',
      'next      done',
      '',
      'stage     finish',
      'decision  allowed',
      'requires  none',
      'next      done',
    ])
    expect(code).toBe(0)
  })

  test('whoever has a second factor is asked for it, and the line that says so is named', async () => {
    const line = (await readFile(join(shippedPolicies, 'signin.rego'), 'utf8'))
      .split('\n')
      .findIndex((text) => text.startsWith('require contains "mfa"'))
    await setting({ mfa: { factors: ['Totp'], policy: 'NoPrompt' } })
    const { output } = await explain('--amr', 'pwd', '--factor', 'totp', '--stage', 'mfa')
    expect(output).toContain('requires  mfa\nnext      mfa (required): totp\n')
    expect(output).toContain(`because   require  signin.rego:${line + 1}  require contains "mfa" if {\n`)
    const after = await explain('--amr', 'pwd,otp', '--factor', 'totp', '--stage', 'finish')
    expect(after.output).toContain('requires  mfa\nnext      done\n')
    // What the person has by the database needs no option.
    const { body } = await issuer.api('POST', `/users/${ada}/mfa-verifications`, { type: 'Totp' })
    expect(body.type).toBe('Totp')
    expect((await explain('--amr', 'pwd', '--stage', 'mfa')).output).toContain('next      mfa (required): totp\n')
    await issuer.sql('DELETE FROM totp_secrets')
    await setting({ mfa: { factors: [], policy: 'NoPrompt' } })
    expect((await called(...about(), '--factor', 'tooth')).output).toContain('There is no factor "tooth".')
  })

  test('rules of the operator decide, with the roles and the time that are asked about', async () => {
    const path = await folderWith('passkey_for_admins', 'network', 'short_sessions')
    const refused = await explain('--path', path, '--amr', 'pwd', '--ip', '198.51.100.7')
    expect(refused.output).toContain('decision  denied: network_not_allowed\n')
    expect(refused.output).toMatch(/^because {3}deny {2}network\.rego:8 {2}deny contains "network_not_allowed" if \{$/m)
    const inside = await run(
      ['--user', ada, '--client', client, '--amr', 'pwd', '--ip', '192.0.2.7', '--stage', 'finish', '--rules'],
      { POLICY_PATH: path },
    )
    expect(inside.output).toContain(
      'session   idle at most 1800 s\nsession   absolute at most 28800 s\nnext      blocked (required, out_of_reach)\n',
    )
    expect(inside.output).toMatch(/^because {3}require {2}passkey_for_admins\.rego:4 /m)
    // With --rules also what did not hold, and where it stopped.
    expect(inside.output).toMatch(/- deny.*network\.rego:8 {2}stopped at line 11: not network_is_known/)
  })

  test('the time may be another one', async () => {
    const office = (await sample('office_hours')).replace('Back office', 'Shop')
    const path = await ruleFolder({
      'signin.rego': await readFile(join(shippedPolicies, 'signin.rego'), 'utf8'),
      'office.rego': office,
    })
    const at = (time: string) => explain('--path', path, '--amr', 'pwd', '--stage', 'mfa', '--at', time)
    expect((await at('2026-01-07T13:00:00+01:00')).output).toContain('decision  allowed')
    expect((await at('2026-01-07T22:00:00+01:00')).output).toContain('decision  denied: outside_office_hours')
  })

  test('a session that exists is asked about by what it began with', async () => {
    const path = await folderWith('mfa_for_roles', 'network')
    await setting({ mfa: { factors: ['Totp'], policy: 'Mandatory' } })
    const asked = (...args: string[]) => explain('--stage', 'session', '--ip', '192.0.2.7', ...args)
    // What the settings want is wanted of who signs in.
    expect((await asked('--amr', 'pwd')).output).toContain(
      'stage     session\ndecision  allowed\nrequires  none\nnext      done\n',
    )
    const weak = await asked('--path', path, '--amr', 'pwd', '--json')
    expect(JSON.parse(weak.output).answers).toEqual([
      expect.objectContaining({
        ...{ stage: 'session', next: { step: 'sign_in', reasons: ['required'], options: { proofs: ['password'] } } },
        input: expect.objectContaining({
          ...{ amr: ['pwd'], acr: 'urn:surrogate:acr:basic', factors: { available: [], used: [] } },
        }),
      }),
    ])
    expect((await asked('--path', path, '--amr', 'pwd,otp')).output).toContain('requires  mfa, enrol\nnext      done\n')
    const elsewhere = await asked('--path', path, '--amr', 'pwd,otp', '--ip', '198.51.100.7')
    expect(elsewhere.output).toContain('decision  denied: network_not_allowed\nnext      blocked (denied_by_rules)\n')
    await setting({ mfa: { factors: [], policy: 'NoPrompt' } })
  })

  test('before the first proof the rules know nobody; as data the input can be asked again', async () => {
    const path = await folderWith('new_device')
    const { code, output } = await explain('--path', path, '--json')
    const { answers } = JSON.parse(output)
    expect(answers).toHaveLength(1)
    expect(answers[0]).toMatchObject({
      stage: 'prove',
      decision: { allow: true, require: ['captcha'], session: {} },
      next: { step: 'captcha', reasons: ['captcha'], options: {} },
      because: [{ rule: 'require', file: 'new_device.rego', line: 7 }],
    })
    expect(answers[0].input.subject).toBeUndefined()
    expect(signInInputSchema.parse(answers[0].input)).toEqual(answers[0].input)
    expect(code).toBe(0)
    expect((await explain('--path', path, '--json', '--known-device')).output).not.toContain('captcha"')
  })

  test('settings and organizations of the database count', async () => {
    const organization = (await issuer.api('POST', '/organizations', { name: 'Acme', isMfaRequired: true })).body.id
    await issuer.api('POST', `/organizations/${organization}/users`, { userIds: [ada] })
    await setting({ mfa: { policy: 'NoPrompt', factors: ['Totp'], organizationRequiredMfaPolicy: 'Mandatory' } })
    const { output } = await explain('--amr', 'pwd', '--stage', 'mfa')
    expect(output).toContain('requires  mfa, enrol\nnext      enrol (required): Totp\n')
    await issuer.api('DELETE', `/organizations/${organization}`)
    await setting({ mfa: { policy: 'PromptAtSignInAndSignUp', factors: ['Totp'] } })
    expect((await explain('--amr', 'pwd', '--stage', 'finish')).output).toContain(
      'next      enrol (suggested): Totp, which can be put off\n',
    )
    await setting({ mfa: { policy: 'NoPrompt', factors: [] } })
  })

  test('what else is due is the step that the issuer would show: proofs, consent, suspension', async () => {
    expect((await explain()).output).toContain(
      'stage     prove\ndecision  allowed\nrequires  none\nnext      sign_in (no_session): password\n',
    )
    const third = (
      await issuer.api('POST', '/applications', {
        ...{ name: 'Elsewhere', type: 'SPA', isThirdParty: true },
        oidcClientMetadata: { redirectUris: ['https://elsewhere.example.test/'], postLogoutRedirectUris: [] },
      })
    ).body.id
    const asked = await run(['--user', 'ada', '--client', third, '--amr', 'pwd', '--stage', 'finish'])
    expect(asked.output).toContain('next      consent (consent)\n')
    await issuer.api('PATCH', `/users/${ada}/is-suspended`, { isSuspended: true })
    expect((await explain('--amr', 'pwd', '--stage', 'mfa')).output).toContain('next      blocked (user_suspended)\n')
    await issuer.api('PATCH', `/users/${ada}/is-suspended`, { isSuspended: false })
  })

  test('who is unknown, what is misspelt, and rules that decide nothing are told, not decided', async () => {
    expect(await called('--user', 'nobody', '--client', client)).toEqual({
      code: 1,
      output: 'There is nobody whom "nobody" names.\n',
    })
    expect(await run(['--user', 'ada', '--client', 'none'])).toMatchObject({
      code: 1,
      output: 'There is no application none.\n',
    })
    expect(await called(...about(), '--stage', 'later')).toMatchObject({
      code: 2,
      output: expect.stringContaining('prove, mfa, finish'),
    })
    const path = await ruleFolder({
      'own.rego': 'package surrogate.signin\n\n# METADATA\n# entrypoint: true\ndecision := {"allow": "yes"}\n',
    })
    const undecided = await called(...about(), '--path', path)
    expect(undecided.output).toContain('The rules give no decision: whoever signs in gets 503.')
    expect(undecided.code).toBe(1)
  })
})

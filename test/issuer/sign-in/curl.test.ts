import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { factorsOf, totpCode } from '../../support/factors.ts'
import { experienceWith, startTestSignIn, type TestSignIn } from '../../support/sign-in.ts'

/** The pages by curl with a cookie jar, as docs/signing-in.md shows it: no script, no browser. */

let signIn: TestSignIn
beforeAll(async () => {
  signIn = await startTestSignIn({ settings: { mfa: { factors: ['Totp'], policy: 'NoPrompt' } } })
})
afterAll(() => signIn?.close())

const folder = async () => {
  const path = await mkdtemp(join(tmpdir(), 'surrogate-test-'))
  onTestFinished(() => rm(path, { recursive: true }))
  return path
}

test('a password and the code of an app sign in by curl alone', async () => {
  signIn.settings = experienceWith({ mfa: { factors: ['Totp'], policy: 'NoPrompt' } })
  const client = await signIn.createClient()
  const person = await signIn.createPerson()
  const secret = await (await factorsOf(signIn)).totp(person.id)
  const jar = join(await folder(), 'jar')
  const curl = async (...options: string[]) => {
    const child = spawn('curl', ['-s', '-b', jar, '-c', jar, '-w', '\n%{http_code} %{redirect_url}', ...options])
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk) => chunks.push(chunk))
    await new Promise((resolve) => child.on('close', resolve))
    const lines = Buffer.concat(chunks).toString().split('\n')
    const [status = '', redirect = ''] = lines.pop()!.split(' ')
    const page = lines.join('\n')
    const csrf = [...page.matchAll(/name="csrf" value="([^"]+)"/g)].at(-1)?.[1] ?? ''
    return { status, redirect, page, csrf }
  }
  const post = (url: string, csrf: string, fields: Record<string, string>) =>
    curl(
      ...['-H', `Origin: ${signIn.url}`, '--data-urlencode', `csrf=${csrf}`, url],
      ...Object.entries(fields).flatMap(([name, value]) => ['--data-urlencode', `${name}=${value}`]),
    )

  const request = encodeURIComponent(JSON.stringify(signIn.request(client)))
  const begun = await curl(`${signIn.url}/oidc/auth?request=${request}`)
  const form = await curl(begun.redirect)
  const asked = await post(begun.redirect, form.csrf, { identifier: person.username, password: person.password })
  expect(asked).toMatchObject({ status: '303', redirect: begun.redirect })
  const second = await curl(begun.redirect)
  expect(second.page).toContain('autocomplete="one-time-code"')
  const code = { kind: 'totp', code: totpCode(secret), choice: 'verify' }
  const done = await post(begun.redirect, second.csrf, code)
  expect(done.status).toBe('303')
  expect(new URL(done.redirect).searchParams.get('code')).toMatch(/^[\w-]{43}$/)
})

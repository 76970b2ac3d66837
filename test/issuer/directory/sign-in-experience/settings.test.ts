import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSettings } from '../../../../issuer/directory/sign-in-experience/settings.ts'
import { silentLogger } from '../../../../platform/logger.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import { until } from '../../../support/until.ts'

/** Settings in memory: every instance acts on the same ones. */

let issuer: TestIssuer
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
})
afterAll(() => issuer.close())

const pageOf = async (instance: number) => (await fetch(`${issuer.urls[instance]}/sign-in`)).text()
const setName = async (displayName: string) => {
  const { status } = await issuer.api('PATCH', '/sign-in-exp', { displayName }, { instance: 0 })
  expect(status).toBe(200)
}

test('who changes a setting sees it in the next answer of the same issuer, and soon in those of others', async () => {
  expect(await pageOf(1)).toContain('Surrogate')
  for (const name of ['Acme', 'Globex', 'Initech']) {
    await setName(name)
    expect(await pageOf(0)).toContain(`<bdi>${name}</bdi></footer>`)
    await until(async () => expect(await pageOf(1)).toContain(`<bdi>${name}</bdi></footer>`))
  }
})

test('the address of a stylesheet that one issuer made is known to the other at once', async () => {
  const { body } = await issuer.api('PATCH', '/sign-in-exp', { color: { primaryColor: '#804020' } }, { instance: 0 })
  expect(body.color.primaryColor).toBe('#804020')
  const [, href] = /href="(\/assets\/branding\/[^"]+)"/.exec(await pageOf(0))!
  const sheet = await fetch(`${issuer.urls[1]}${href}`)
  expect([sheet.status, sheet.headers.get('content-type'), sheet.headers.get('cache-control')]).toEqual([
    200,
    'text/css; charset=utf-8',
    'public, max-age=31536000, immutable',
  ])
  expect(await sheet.text()).toContain('--button:#804020')
  // An old address is answered, and kept by nobody.
  const old = await fetch(`${issuer.urls[1]}/assets/branding/default-0000000000000000.css`)
  expect([old.status, old.headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect((await fetch(`${issuer.urls[1]}/assets/branding/../x.css`)).status).not.toBe(200)
})

test('how long sessions last comes from the same memory', async () => {
  const settings = await createSettings({ database: issuer.database, logger: silentLogger })
  try {
    await issuer.api('PATCH', '/configs/oidc/session', { ttl: 7_200 })
    // Nobody tells this one: it looks by itself.
    await until(() => expect(settings.session().ttl).toBe(7_200))
  } finally {
    await settings.close()
  }
})

test('who does not hear of changes finds them: also those that an issuer of an older version makes', async () => {
  const settings = await createSettings({ database: issuer.database, logger: silentLogger })
  try {
    const app = await issuer.createApplication()
    expect(await settings.ofApplication(app.id)).toBeUndefined()
    await issuer.sql(
      `INSERT INTO application_sign_in_experiences (application_id, value) VALUES ($1, '{"displayName": "Shop"}')`,
      [app.id],
    )
    await issuer.sql(
      `INSERT INTO settings (name, value) VALUES ('sign-in-experience', '{"displayName": "Umbrella"}')
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    )
    await until(() => expect(settings.experience().displayName).toBe('Umbrella'))
    expect((await settings.ofApplication(app.id))?.displayName).toBe('Shop')
  } finally {
    await settings.close()
  }
})

test('a connector that sends is known within a second, and so is that it was removed', async () => {
  const settings = await createSettings({ database: issuer.database, logger: silentLogger })
  try {
    expect(settings.sender('Email')).toBeUndefined()
    await issuer.sql(
      `INSERT INTO connectors (id, connector_id, type, sealed_config) VALUES ('mail', 'http-email', 'Email', '\\x00')`,
    )
    await until(() => expect(settings.sender('Email')).toMatchObject({ id: 'mail', type: 'Email' }))
    expect(settings.sender('Sms')).toBeUndefined()
    await issuer.sql('DELETE FROM connectors')
    await until(() => expect(settings.sender('Email')).toBeUndefined())
  } finally {
    await settings.close()
  }
})

test('what cannot be understood keeps an issuer from starting, and leaves one that runs as it was', async () => {
  await setName('Before')
  const stored = JSON.stringify({ displayName: 'After', mfa: { factors: ['Unknown'], policy: 'Mandatory' } })
  const running = await createSettings({ database: issuer.database, logger: silentLogger })
  const remember = running.memory<string>()
  try {
    expect(await remember('a', async () => 'before')).toBe('before')
    expect(await remember('a', async () => 'again')).toBe('before')
    await issuer.sql(`UPDATE settings SET value = $1 WHERE name = 'sign-in-experience'`, [stored])
    await running.refreshed()
    expect(running.experience().displayName).toBe('Before')
    // What depends on settings is asked for anew all the same: a connector may be gone.
    expect(await remember('a', async () => 'after')).toBe('after')
    await expect(createSettings({ database: issuer.database, logger: silentLogger })).rejects.toThrow()
  } finally {
    await running.close()
    await issuer.sql(`DELETE FROM settings WHERE name = 'sign-in-experience'`)
  }
})

test('branding that cannot be made breaks no page', async () => {
  // A rule that was allowed when it was saved, and is no more.
  const stored = JSON.stringify({ displayName: 'Acme', customCss: '@import "https://evil.test/x.css";' })
  await issuer.sql(`INSERT INTO settings (name, value) VALUES ('sign-in-experience', $1)`, [stored])
  await until(async () => {
    await pageOf(0)
    expect(issuer.logged()).toContain('the branding of a page could not be made')
  })
  const content = await pageOf(0)
  expect(content).toContain('Surrogate</footer>')
  expect(content).not.toContain('evil.test')
})

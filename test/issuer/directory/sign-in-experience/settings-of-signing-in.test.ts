import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

/** `/api/sign-in-exp`, what applications have of their own, and what is refused when it is saved. */

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())
beforeEach(() => api.database.knex('settings').delete())

const read = () => api.expect(200, 'GET', '/sign-in-exp')
const patch = (body: unknown) => api.call('PATCH', '/sign-in-exp', body)
const refused = async (body: unknown) => {
  const { status, body: told } = await patch(body)
  return [status, told.code]
}

describe('the record', () => {
  test('is whole before anybody has set anything, and says what is in force', async () => {
    expect(await read()).toMatchObject({
      tenantId: 'default',
      id: 'default',
      signInMode: 'SignInAndRegister',
      signUp: { identifiers: ['username'], password: true, verify: false },
      mfa: { factors: [], policy: 'PromptAtSignInAndSignUp' },
      sentinelPolicy: { maxAttempts: 10, lockoutDuration: 15 },
      verificationCodePolicy: { expirationDuration: 600, maxRetryAttempts: 5 },
      passwordPolicy: { length: { min: 8, max: 256 } },
      forgotPasswordMethods: null,
      customCss: null,
    })
    expect((await read()).signIn.methods.map(({ identifier }: { identifier: string }) => identifier)).toEqual([
      'username',
      'email',
      'phone',
    ])
  })

  test.each([
    { signInMode: 'SignInAndRegister', sentinelPolicy: {} },
    {
      signUp: { identifiers: [], password: true, verify: false },
      signIn: {
        methods: ['username', 'email', 'phone'].map((identifier) => ({
          identifier,
          password: true,
          verificationCode: false,
          isPasswordPrimary: false,
        })),
      },
      mfa: { factors: [], policy: 'PromptAtSignInAndSignUp' },
    },
    {
      signUp: { identifiers: ['email'], password: false, verify: true },
      signIn: {
        methods: ['username', 'email', 'phone'].map((identifier) => ({
          identifier,
          password: true,
          verificationCode: identifier !== 'username',
          isPasswordPrimary: false,
        })),
      },
    },
    { sentinelPolicy: { maxAttempts: 5, lockoutDuration: 10 } },
    { mfa: { factors: ['Totp'], policy: 'Mandatory' } },
    { forgotPasswordMethods: ['EmailVerificationCode', 'PhoneVerificationCode'] },
    { forgotPasswordMethods: [] },
    { passwordExpiration: { enabled: true, validPeriodDays: 30 } },
    { passwordExpiration: { enabled: false } },
    { singleSignOnEnabled: true },
    { passwordPolicy: { length: { max: 256 } } },
  ])('takes what clients made for Logto send: %j', async (body) => {
    const { status, body: answer } = await patch(body)
    expect([status, answer]).toEqual([200, expect.objectContaining({})])
    expect(answer).toMatchObject(body)
    expect(await read()).toEqual(answer)
  })

  test('keeps every member when ten people change ten at once', async () => {
    const words = Array.from({ length: 10 }, (_, index) => `word${index}`)
    const changes: Record<string, unknown>[] = [
      { singleSignOnEnabled: true },
      { hideLogtoBranding: true },
      { displayName: 'Acme' },
      { sentinelPolicy: { maxAttempts: 3, lockoutDuration: 1 } },
      { supportEmail: 'help@example.test' },
      { termsOfUseUrl: 'https://acme.test/terms' },
      { mfa: { factors: ['Totp'], policy: 'Mandatory' } },
      { passwordPolicy: { rejects: { words } } },
      { customContent: { note: 'Hello' } },
      { color: { primaryColor: '#102030' } },
    ]
    const answers = await Promise.all(changes.map(patch))
    expect(answers.map(({ status }) => status)).toEqual(changes.map(() => 200))
    const whole = await read()
    for (const change of changes) expect(whole).toMatchObject(change)
  })

  test('checks what two changes come to together: neither of two that exclude each other slips past the other', async () => {
    const method = { password: true, verificationCode: false, isPasswordPrimary: true }
    const answers = await Promise.all([
      patch({ signUp: { identifiers: ['email'], password: true, verify: true } }),
      patch({ signIn: { methods: [{ identifier: 'username', ...method }] } }),
    ])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400])
  })
})

describe('nobody is locked out by', () => {
  const method = { identifier: 'username', password: true, verificationCode: false, isPasswordPrimary: true }
  test.each([
    ['backup_code_cannot_be_enabled_alone', { mfa: { factors: ['BackupCode'], policy: 'Mandatory' } }],
    ['duplicated_mfa_factors', { mfa: { factors: ['Totp', 'Totp'], policy: 'Mandatory' } }],
    ['at_least_one_authentication_factor', { signIn: { methods: [{ ...method, password: false }] } }],
    ['username_requires_password', { signIn: { methods: [{ ...method, password: false, verificationCode: true }] } }],
    ['passwordless_requires_verify', { signUp: { identifiers: ['email'], password: true, verify: false } }],
    [
      'miss_sign_up_identifier_in_sign_in',
      {
        signUp: { identifiers: ['email'], password: true, verify: true },
        signIn: { methods: [method] },
      },
    ],
    ['code_sign_in_must_be_enabled', { signUp: { identifiers: ['email'], password: false, verify: true } }],
  ])('%s', async (code, body) => {
    const before = await read()
    expect(await refused(body)).toEqual([400, `sign_in_experiences.${code}`])
    expect(await read()).toEqual(before)
  })
})

describe('T 13, T 44: addresses', () => {
  const scripts = [
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    ' javascript:alert(1)',
    'java\nscript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:x',
    'https://user:password@acme.test/',
    'file:///etc/passwd',
    '//acme.test/x',
  ]
  const members = [
    (link: string) => ({ unknownSessionRedirectUrl: link }),
    (link: string) => ({ termsOfUseUrl: link }),
    (link: string) => ({ privacyPolicyUrl: link }),
    (link: string) => ({ supportWebsiteUrl: link }),
    (link: string) => ({ signInPages: link }),
    (link: string) => ({ branding: { logoUrl: link } }),
    (link: string) => ({ branding: { darkLogoUrl: link } }),
    (link: string) => ({ branding: { favicon: link } }),
  ]
  test.each(scripts)('%j is refused wherever a browser would follow it', async (link) => {
    for (const member of members) {
      expect([JSON.stringify(member(link)), await refused(member(link))]).toEqual([
        JSON.stringify(member(link)),
        [400, 'guard.invalid_input'],
      ])
    }
  })

  test('pages of one’s own stand on the site of the issuer', async () => {
    expect(await refused({ signInPages: 'https://elsewhere.example/sign-in' })).toEqual([
      422,
      'sign_in_experiences.sign_in_pages_not_same_site',
    ])
    expect(await refused({ signInPages: 'http://management.test/sign-in' })).toEqual([400, 'guard.invalid_input'])
  })
})

describe('T 42: a stylesheet', () => {
  const fails = async (customCss: string) => {
    const { status, body } = await patch({ customCss })
    return [status, body.code, body.data?.line]
  }
  const notAllowed = 'sign_in_experiences.custom_css_not_allowed'

  test.each([
    '@import "https://evil.test/x.css";',
    '@import url(/assets/x.css);',
    '@IMPORT "x";',
    '@charset "utf-8";',
    '@font-face{font-family:x;src:url(https://evil.test/x)}',
    'a{background:url(https://evil.test/x)}',
    'a{background:url("//evil.test/x")}',
    'a{background:URL(data:text/html,x)}',
    'a{background:url(/assets/../oidc/auth)}',
    'a{background:url(var(--x))}',
    'a{background:image-set("https://evil.test/x" 1x)}',
    'a{background:src("https://evil.test/x")}',
    'a{width:expression(alert(1))}',
    'a{width:EXPRESSION(alert(1))}',
    'a{behavior:url(x.htc)}',
    'a{-moz-binding:url(x)}',
    'a{color:red}</style><script>alert(1)</script>',
    'a{content:"</style>"}',
    'input[value^=a]{color:red}',
    'input[value=a]{color:red}',
    'input[ value="a" ]{color:red}',
    'input[name=csrf][value*="a"]{color:red}',
    'a{color:red;b{color:blue}}',
    'a{--x:{a:b}}',
    '\\61{color:red}',
    'a{color:r\\65 d}',
    'a{back\\67 round:u\\72l(x)}',
    'a{content:attr(value)}',
    'a{color:red',
    'a{color:rgb(1,2,3}',
    '@media all{@media all{a{color:red}}}',
    '@media all{a{color:red}',
    '}a{color:red}',
    'a{color:red;;:x}',
    '\u0000a{color:red}',
    'é{color:red}',
  ])('with %j is refused when it is saved', async (css) => {
    const { status, body } = await patch({ customCss: css })
    expect([status, body.code]).toEqual(css.includes('\u0000') ? [400, 'guard.invalid_input'] : [422, notAllowed])
    expect((await read()).customCss).toBeNull()
  })

  test('is told where it is wrong', async () => {
    expect(await fails('a{color:red}\n/* two\nlines */\nb{behavior:x}')).toEqual([422, notAllowed, 4])
  })

  test('of the usual kind is kept as it was sent', async () => {
    const css = `/* ours */
:root { --radius: 4px; }
main > .client, button:hover::before { border-radius: calc(var(--radius) * 2) !important; }
input[type="password"]:focus-visible:not([disabled]) { outline: 2px solid rgb(0 0 0 / 50%); }
@media (max-width: 480px) and (prefers-color-scheme: dark) { body { background: linear-gradient(#000, #111 50%); } }
h1::after { content: "→ “Willkommen”"; }`
    const { status, body } = await patch({ customCss: css })
    expect([status, body.customCss]).toEqual([200, css])
  })

  test('may show what was uploaded, and nothing that was not', async () => {
    const { url } = await api.expect(201, 'POST', '/assets', { content: Buffer.from('GIF89a').toString('base64') })
    expect((await patch({ customCss: `body{background:url(${url})}` })).status).toBe(200)
    const other = `/assets/${'0'.repeat(64)}.png`
    expect(await refused({ customCss: `body{background:url(${other})}` })).toEqual([
      422,
      'sign_in_experiences.asset_not_found',
    ])
    expect(await refused({ branding: { logoUrl: other } })).toEqual([422, 'sign_in_experiences.asset_not_found'])
  })
})

describe('a picture', () => {
  const upload = (content: string | Buffer) =>
    api.call('POST', '/assets', { content: Buffer.from(content).toString('base64') })

  test.each([
    ['image/png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0])],
    ['image/jpeg', Buffer.from([0xff, 0xd8, 0xff, 0xe0])],
    ['image/webp', Buffer.from('RIFF0000WEBPVP8 ')],
    ['image/gif', Buffer.from('GIF89a')],
    ['image/svg+xml', Buffer.from('<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>')],
  ])('%s is known by what is in it; the same twice is one', async (type, content) => {
    const first = await upload(content)
    expect([first.status, first.body]).toEqual([201, { url: expect.any(String), type, bytes: content.length }])
    expect((await upload(content)).body).toEqual(first.body)
    expect(await api.database.knex('assets').where({ id: first.body.url.slice(8) })).toHaveLength(1)
  })

  test.each(['<html><script>alert(1)</script></html>', 'GIF', 'BM......', '<!doctype html><svg></svg>'])(
    '%j is none',
    async (content) => {
      const { status, body } = await upload(content)
      expect([status, body.code]).toEqual([422, 'asset.type_not_supported'])
    },
  )

  test('has 500 kB at most', async () => {
    expect((await upload(Buffer.concat([Buffer.from('GIF89a'), Buffer.alloc(499_994)]))).status).toBe(201)
    expect((await upload(Buffer.concat([Buffer.from('GIF89a'), Buffer.alloc(499_995)]))).status).not.toBe(201)
  })
})

describe('an application', () => {
  const create = async () => (await api.expect(200, 'POST', '/applications', { name: 'App', type: 'SPA' })).id

  test('has nothing of its own at first; what it sets is merged, and gone with it', async () => {
    const id = await create()
    const path = `/applications/${id}/sign-in-experience`
    const nothing = {
      tenantId: 'default',
      applicationId: id,
      color: {},
      branding: {},
      customCss: null,
      termsOfUseUrl: null,
      privacyPolicyUrl: null,
      displayName: null,
      signInPages: null,
    }
    expect(await api.expect(200, 'GET', path)).toEqual(nothing)
    await Promise.all([
      api.expect(200, 'PATCH', path, { displayName: 'Shop' }),
      api.expect(200, 'PATCH', path, { color: { primaryColor: '#ff0000' } }),
    ])
    const own = { ...nothing, displayName: 'Shop', color: { primaryColor: '#ff0000' } }
    expect(await api.expect(200, 'GET', path)).toEqual(own)
    expect((await api.call('PATCH', path, { customCss: '@import "x"' })).status).toBe(422)
    expect((await api.call('PATCH', path, { branding: { logoUrl: 'javascript:x' } })).status).toBe(400)
    expect(await api.expect(200, 'GET', path)).toEqual(own)
    await api.expect(204, 'DELETE', `/applications/${id}`)
    expect((await api.call('GET', path)).status).toBe(404)
  })
})

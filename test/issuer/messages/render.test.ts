import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readMailAddress, readPhoneNumber } from '../../../deliveries/messages/addresses.ts'
import type { Template } from '../../../deliveries/messages/factories.ts'
import { render } from '../../../issuer/messages/render.ts'
import { type MessageType, templates } from '../../../issuer/messages/templates.ts'
import { catalogueOf } from '../../../issuer/messages/texts/catalogues.ts'
import { readVariables, withoutLinks } from '../../../issuer/messages/variables.ts'

const baseUrl = 'https://id.example.com'
const locales = ['en', 'de', 'fr', 'es', 'ja']
const everything = {
  ...{ code: '123456', minutes: '10', left: '9', link: `${baseUrl}/x`, factor: 'Passkey', device: 'Firefox on Linux' },
  ...{ organization: 'Acme', address: 'new@example.com', actor: 'Bob', reason: 'Ticket 7', number: '47' },
}
const rendered = (
  type: MessageType,
  variables: Record<string, string>,
  options: { locale?: string; operators?: Template[] } = {},
) =>
  render({
    ...{ type, usage: templates[type].usage === 'own' ? type : 'Notice', channel: 'email' },
    catalogue: catalogueOf(options.locale ?? 'en'),
    variables: readVariables(variables, baseUrl),
    operators: options.operators ?? [],
  })

test('every message in every language is filled, differs from English, and has no brace left', () => {
  for (const type of Object.keys(templates) as MessageType[]) {
    const english = rendered(type, everything)
    for (const locale of locales)
      for (const channel of ['email', 'sms'] as const) {
        const { subject, text, html } = render({
          ...{ type, usage: type, channel, catalogue: catalogueOf(locale), operators: [] },
          variables: readVariables(everything, baseUrl),
        })
        expect(`${subject}${text}${html ?? ''}`).not.toMatch(/[{}]/.test(html ?? '') ? /\{\w+\}/ : /[{}]/)
        expect(subject.length).toBeGreaterThan(0)
        expect(html === undefined).toBe(channel === 'sms')
        if (locale !== 'en') expect(text).not.toBe(english.text)
        if (channel === 'sms' && templates[type].ttl === 600) expect(text).toContain('123456')
      }
  }
  const files = readdirSync(new URL('../../../issuer/messages/texts/', import.meta.url))
  expect(files.filter((name) => /^[a-z]{2}\.ts$/.test(name)).toSorted()).toEqual(
    locales.map((name) => `${name}.ts`).toSorted(),
  )
})

test('variables are escaped in HTML and untouched in text', () => {
  const { subject, text, html } = rendered('ImpersonationStarted', {
    actor: `<b>Bob & "Eve's"</b>`,
    reason: 'a<script>alert(1)</script>',
    link: baseUrl,
  })
  expect(text).toContain(`<b>Bob & "Eve's"</b> has begun`)
  expect(html).toContain('&lt;b&gt;Bob &amp; &quot;Eve&#39;s&quot;&lt;/b&gt;')
  expect(html).not.toContain('<script>')
  expect(subject).toBe('Somebody acts in your name')
})

test('names make no links, no lines and no directions', () => {
  const cases = [
    ['Visit https://evil.example/x now', 'Visit now'],
    ['www.evil.example free', 'free'],
    ['evil.example', 'evil. example'],
    ['evil。example', 'evil. example'],
    ['javascript://evil%0aalert(1)', ''],
    ['//evil.example/x', 'evil. example/x'],
    ['Ada\r\nBcc: eve@evil.example', 'Ada Bcc: eve@evil. example'],
    ['a\u202Eb\u200Bc', 'abc'],
    ['J. R. R. Tolkien', 'J. R. R. Tolkien'],
  ] as const
  for (const [name, harmless] of cases) expect(withoutLinks(name)).toBe(harmless)
  expect(withoutLinks('x'.repeat(10_000))).toHaveLength(200)
  const { text } = rendered('OrganizationInvitation', {
    organization: 'Win at https://evil.example',
    link: `${baseUrl}/i`,
  })
  expect(text.match(/https?:\/\/\S+/g)).toEqual([`${baseUrl}/i`])
})

test('codes and links that are none of ours are refused', () => {
  for (const code of ['12\r\n34', '', '123456 https://evil.example', 'a'.repeat(33)])
    expect(() => readVariables({ code }, baseUrl)).toThrow('not what it must be')
  for (const link of ['https://evil.example', `${baseUrl}.evil.example/x`, `${baseUrl}@evil.example`, `${baseUrl}/ x`])
    expect(() => readVariables({ link }, baseUrl)).toThrow('must lead to this service')
  expect(readVariables({ link: `${baseUrl}/account` }, baseUrl)).toEqual({ link: `${baseUrl}/account` })
})

test('recipients are one address in a form that every server takes, or none', () => {
  const refused = [
    'ada@example.com\r\nBcc: eve@example.com',
    'ada@example.com,eve@example.com',
    'ada@example.com;eve@example.com',
    'Ada <ada@example.com>',
    '"ada lovelace"@example.com',
    'ada@',
    '@example.com',
    'ada@localhost',
    'ada@192.0.2.1',
    'ada@[192.0.2.1]',
    '.ada@example.com',
    'a..b@example.com',
    'аda@example.com',
    `${'a'.repeat(65)}@example.com`,
    `ada@${'a.'.repeat(130)}com`,
    'ada@exa mple.com',
    'ada@example.com\0',
    'ada@-example.com',
  ]
  expect(refused.filter((address) => readMailAddress(address) !== undefined)).toEqual([])
  expect(readMailAddress("o'hara+x@example.co.uk")).toBe("o'hara+x@example.co.uk")
  // A host in another script is written as what it is, not as what it looks like.
  expect(readMailAddress('ada@exаmple.com')).toBe('ada@xn--exmple-4nf.com')
  expect(['+4915112345678', '4915112345678'].map(readPhoneNumber)).toEqual(['+4915112345678', '+4915112345678'])
  expect(['+0123456789', '+49 151', '+49151\r\n1', '', '12', '+1234567890123456'].map(readPhoneNumber)).toEqual(
    Array(6).fill(undefined),
  )
})

test("operators' texts take the place of ours, but not for notices", () => {
  const operators: Template[] = [
    { usageType: 'SignIn', subject: 'Acme: {{code}}', content: 'Hello,\n\nyour code: {{ code }} <b>{{unknown}}</b>' },
    { usageType: 'Register', contentType: 'text/html', subject: 'Hi', content: '<h1>Hi</h1><p>{{code}}</p>' },
    { usageType: 'Generic', content: 'Generic {{code}}' },
  ]
  const signIn = rendered('SignIn', { code: '123456' }, { operators })
  expect(signIn).toMatchObject({ subject: 'Acme: 123456', text: 'Hello,\n\nyour code: 123456 <b></b>' })
  expect(signIn.html).toContain('&lt;b&gt;&lt;/b&gt;')
  const register = rendered('Register', { code: '123456' }, { operators })
  expect(register).toEqual({ subject: 'Hi', html: '<h1>Hi</h1><p>123456</p>', text: 'Hi\n123456' })
  expect(rendered('BindMfa', { code: '123456' }, { operators }).text).toBe('Generic 123456')
  expect(rendered('PasswordChanged', { link: baseUrl }, { operators }).text).toContain('was changed')
})
